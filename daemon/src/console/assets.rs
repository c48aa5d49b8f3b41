//! The embedded files, under an address that names their content (console 2.3).

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// One embedded file.
#[derive(Debug)]
pub struct Asset {
    /// File name.
    pub name: &'static str,
    /// Media type.
    pub media: &'static str,
    /// Content.
    pub body: &'static str,
}

/// Every file that the console serves.
pub const ASSETS: &[Asset] = &[
    Asset {
        name: "console.css",
        media: "text/css; charset=utf-8",
        body: include_str!("static/console.css"),
    },
    Asset {
        name: "fragment.js",
        media: "text/javascript; charset=utf-8",
        body: include_str!("static/fragment.js"),
    },
    Asset {
        name: "icon.svg",
        media: "image/svg+xml",
        body: include_str!("static/icon.svg"),
    },
    Asset {
        name: "sse.js",
        media: "text/javascript; charset=utf-8",
        body: include_str!("static/sse.js"),
    },
    Asset {
        name: "time.js",
        media: "text/javascript; charset=utf-8",
        body: include_str!("static/time.js"),
    },
];

/// 12 hexadecimal digits over all files: modules import each other by plain relative names, so
/// they share one folder whose name changes when any of them does.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in ASSETS {
        hash.update(asset.name);
        hash.update([0]);
        hash.update(asset.body);
        hash.update([0]);
    }
    data_encoding::HEXLOWER
        .encode(&hash.finalize())
        .chars()
        .take(12)
        .collect()
});

/// The address of a file.
#[must_use]
pub fn address(name: &str) -> String {
    format!("/static/{}/{name}", *VERSION)
}

/// The file at an address, if the version is the current one.
#[must_use]
pub fn find(version: &str, name: &str) -> Option<&'static Asset> {
    if version != *VERSION {
        return None;
    }
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_under_its_address_only() {
        let address = address("sse.js");
        let mut parts = address.split('/').skip(2);
        let (version, name) = (parts.next().unwrap(), parts.next().unwrap());
        assert_eq!(version.len(), 12);
        assert!(find(version, name).is_some());
        assert!(find("000000000000", name).is_none());
        assert!(find(version, "../secret").is_none());
    }

    /// console 2.4, 2.5
    #[test]
    fn the_files_stay_small_and_name_no_address_outside() {
        let size = |ending: &str| {
            ASSETS
                .iter()
                .filter(|a| a.name.ends_with(ending))
                .map(|a| a.body.len())
                .sum::<usize>()
        };
        assert!(size(".js") <= 25 * 1024, "scripts: {}", size(".js"));
        assert!(size(".css") <= 24 * 1024, "style: {}", size(".css"));
        for asset in ASSETS {
            let body = asset.body.replace("http://www.w3.org/2000/svg", "");
            assert!(!body.contains("http://"), "{}", asset.name);
            assert!(!body.contains("https://"), "{}", asset.name);
            assert!(!body.contains("innerHTML"), "{}", asset.name);
        }
    }
}
