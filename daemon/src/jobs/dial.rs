//! The connections that core makes for workers: private addresses only (protocols.md 1.5, 1.6).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It leads out of the site.
    #[error("`{0}` is not a private address")]
    NotPrivate(SocketAddr),
    /// Nobody answers.
    #[error("`{address}` does not answer")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// Connects to an address, if it is private.
///
/// # Errors
/// When it is not, or nobody answers in time.
pub fn dial(address: SocketAddr, timeout: Duration) -> Result<TcpStream, Error> {
    if !is_private(address.ip()) {
        return Err(Error::NotPrivate(address));
    }
    TcpStream::connect_timeout(&address, timeout)
        .map_err(|source| Error::Connect { address, source })
}

/// The list of protocols.md 1.5. The addresses of cloud metadata services are link-local and yet
/// not private: they hand out credentials.
#[must_use]
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            (ip.is_loopback() || ip.is_private() || ip.is_link_local())
                && ip.octets() != [169, 254, 169, 254]
        }
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(inner) => is_private(IpAddr::V4(inner)),
            None => {
                (ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local())
                    && ip != Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_told_from_public_ones_and_from_metadata_services() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.1.1",
            "::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "8.8.8.8",
            "172.32.0.1",
            "192.169.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::",
            "fd00:ec2::254",
            "2001:db8::1",
            "::ffff:8.8.8.8",
            "::ffff:169.254.169.254",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_public_address_is_refused_before_anything_is_sent() {
        let soon = Duration::from_millis(1);
        let public = "192.0.2.1:80".parse().unwrap();
        assert!(matches!(dial(public, soon), Err(Error::NotPrivate(_))));
    }
}
