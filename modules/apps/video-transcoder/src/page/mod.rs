// SPDX-License-Identifier: Apache-2.0
//! The viewer's page: files that are part of the component.

/// Returns the media type and the bytes of a file.
pub fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    FILES.iter().find(|(name, _, _)| *name == path).map(|(_, media_type, bytes)| (*media_type, *bytes))
}

static FILES: [(&str, &str, &[u8]); 3] = [
    ("/", "text/html; charset=utf-8", include_bytes!("page.html")),
    ("/page.js", "text/javascript; charset=utf-8", include_bytes!("page.js")),
    ("/page.css", "text/css; charset=utf-8", include_bytes!("page.css")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{COARSENESSES, Colours, Quality, RATES, SIZES};

    /// What a page loads comes from the module, and it offers what there is.
    #[test]
    fn the_page_asks_nobody_else_and_offers_all_there_is() {
        for (path, _, bytes) in &FILES {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains("://") && !text.contains("url("), "{path}");
        }
        let page = std::str::from_utf8(FILES[0].2).unwrap();
        let sizes = SIZES.iter().map(|size| format!("{}x{}", size.0, size.1));
        let numbers = RATES.iter().chain(&COARSENESSES).map(u32::to_string);
        for choice in sizes.chain(numbers).chain(Colours::ALL.map(|colours| colours.name().to_owned())) {
            assert!(page.contains(&format!("<option value=\"{choice}\"")), "{choice}");
        }
        let offered = page.split("value=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let known = |value: &str| {
            ["size", "rate", "colours", "coarseness"]
                .iter()
                .any(|name| Quality::default().with(&format!("{name}={value}")).is_ok())
        };
        assert!(offered.into_iter().all(known));
        assert!(file("/page.png").is_none());
    }
}
