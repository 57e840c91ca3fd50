//! Numbers with their nouns and verbs, for every sentence of the project.

/// A number with its noun in singular or plural: `1 node`, `2 nodes`, `5,000 nodes`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {noun}{}", grouped(number), agree(number, "", "s"))
}

/// A number of things, its thousands apart: `5,000`. Not for numbers that name something, such as
/// revisions and ports, nor for lines that scripts read.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `one` for the number 1, otherwise `several`: the form of a verb that follows a [`count`].
pub fn agree<'a>(number: impl TryInto<u64>, one: &'a str, several: &'a str) -> &'a str {
    if number.try_into().is_ok_and(|number| number == 1) { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let said = [0_u64, 999, 1_000, 45_678, 1_234_567].map(grouped);
        assert_eq!(said, ["0", "999", "1,000", "45,678", "1,234,567"]);
        assert_eq!(count(5_000_u32, "node"), "5,000 nodes");
    }

    #[test]
    fn only_one_is_singular() {
        let said = |number: usize| (count(number, "node"), agree(number, "waits", "wait"));
        assert_eq!(said(0), ("0 nodes".to_owned(), "wait"));
        assert_eq!(said(1), ("1 node".to_owned(), "waits"));
        assert_eq!(said(2), ("2 nodes".to_owned(), "wait"));
    }
}
