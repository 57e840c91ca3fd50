//! Escapes text for HTML. There are two functions because a browser reads two kinds of text: it
//! resolves entities in elements and attributes ([`html`]), but not in a `<script>`, where only an
//! escape of JSON itself stays what it is ([`json_in_script`]).
//!
//! Not here: invisible characters and commands to a CI system (`neutral`).

/// `text` for the content of an element, or for an attribute in quotes of either kind.
pub(crate) fn html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// JSON for a `<script>`: without a tag or a comment, and with the same value.
pub(crate) fn json_in_script(json: &str) -> String {
    // JSON has these characters only inside of strings.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><!-- & \"x\" 'y' -->";

    #[test]
    fn text_is_no_markup() {
        let safe = "&lt;/script&gt;&lt;!-- &amp; &quot;x&quot; &#39;y&#39; --&gt;";
        assert_eq!(html(HOSTILE), safe);
    }

    #[test]
    fn json_does_not_end_its_script_and_keeps_its_value() {
        let json = serde_json::to_string(HOSTILE).unwrap();
        let safe = json_in_script(&json);
        assert!(!safe.contains(['<', '>', '&']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), HOSTILE);
    }
}
