//! Numbers with their nouns and verbs, for every sentence of the project.

/// A number with its noun in singular or plural: `1 node`, `2 nodes`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {noun}{}", agree(number, "", "s"))
}

/// `one` for the number 1, otherwise `several`: the form of a verb that follows a [`count`].
pub fn agree<'a>(number: impl TryInto<u64>, one: &'a str, several: &'a str) -> &'a str {
    if number.try_into().is_ok_and(|number| number == 1) { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let said = |number: usize| (count(number, "node"), agree(number, "waits", "wait"));
        assert_eq!(said(0), ("0 nodes".to_owned(), "wait"));
        assert_eq!(said(1), ("1 node".to_owned(), "waits"));
        assert_eq!(said(2), ("2 nodes".to_owned(), "wait"));
    }
}
