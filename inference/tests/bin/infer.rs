//! The engine process alone, for the tests of this crate. The product's executable is `sentinel`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["infer", "--role", role] => sentinel_inference::run_child(role, None),
        ["infer", "--role", role, "--fault", fault] => {
            sentinel_inference::run_child(role, Some(fault))
        }
        _ => ExitCode::from(64),
    }
}
