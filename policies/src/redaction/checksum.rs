//! The checksums that some keys carry.

/// CRC-32 as in IEEE 802.3, bit by bit: keys are short.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let rest = bytes.iter().fold(u32::MAX, |rest, &b| {
        (0..8).fold(rest ^ u32::from(b), |r, _| {
            (r >> 1) ^ (0xedb8_8320 & (r & 1).wrapping_neg())
        })
    });
    !rest
}

/// `value` in a base with these digits, at least `width` of them.
pub(super) fn in_base(value: u32, digits: &[u8], width: usize) -> String {
    let base = u32::try_from(digits.len()).unwrap_or(u32::MAX).max(2);
    let mut rest = value;
    let mut text = Vec::with_capacity(width);
    while rest > 0 || text.len() < width {
        let digit = usize::try_from(rest % base)
            .ok()
            .and_then(|d| digits.get(d));
        text.push(char::from(digit.copied().unwrap_or(b'0')));
        rest /= base;
    }
    text.iter().rev().collect()
}

pub(super) const BASE62: &[u8; 62] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(super) const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// GitHub and npm: thirty letters and six of their CRC-32 in base 62.
pub(super) fn github(body: &str) -> bool {
    body.split_at_checked(30)
        .is_some_and(|(secret, check)| in_base(crc32(secret.as_bytes()), BASE62, 6) == check)
}

/// GitLab's routable tokens: seven letters of the CRC-32 of all before them in base 36.
pub(super) fn gitlab(prefix: &str, body: &str) -> bool {
    body.len().checked_sub(7).is_some_and(|at| {
        body.split_at_checked(at).is_some_and(|(head, check)| {
            in_base(crc32(format!("{prefix}{head}").as_bytes()), BASE36, 7) == check
        })
    })
}

/// Grafana's service accounts: eight hexadecimal digits of the CRC-32, lowest byte first.
pub(super) fn grafana(prefix: &str, body: &str) -> bool {
    body.split_once('_').is_some_and(|(secret, check)| {
        let sum = crc32(format!("{prefix}{secret}").as_bytes());
        data_encoding::HEXLOWER.encode(&sum.to_le_bytes()) == check
    })
}

#[cfg(test)]
mod tests {
    use super::{BASE62, crc32, in_base};

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(in_base(61, BASE62, 3), "00z");
        assert_eq!(in_base(62 * 62, BASE62, 1), "100");
    }
}
