//! The worker process of the tests: the same body as `sentinel worker`.

fn main() -> std::process::ExitCode {
    sentinel_daemon::jobs::worker_main()
}
