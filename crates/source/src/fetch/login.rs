//! Passes a login from a URL to git in the environment: other users of the machine can read the
//! arguments of a process, and git passes a URL on to its child processes.

use std::ffi::OsString;

use percent_encoding::percent_decode_str;

/// Environment variable that the helper reads.
const PASSWORD: &str = "DS_PLAN_GIT_PASSWORD";

/// A credential helper (gitcredentials(7)) that returns the password from the environment.
const HELPER: &str =
    "!f() { test \"$1\" = get && printf 'password=%s\\n' \"$DS_PLAN_GIT_PASSWORD\"; }; f";

/// The part of a URL before the `@`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Login {
    user: String,
    password: Option<String>,
}

/// Splits a URL into the URL without its login, and the login. Only for http: for ssh, the user is
/// not secret.
pub(super) fn apart(url: &str) -> (String, Option<Login>) {
    let whole = (url.to_owned(), None);
    let Some((scheme, rest)) = url.split_once("://") else { return whole };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((login, host)) = authority.rsplit_once('@').filter(|_| scheme.starts_with("http"))
    else {
        return whole;
    };
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = Login { user: decoded(user), password: password.map(decoded) };
    // Git rejects such a URL itself.
    if login.user.contains(char::is_control)
        || login.password.as_ref().is_some_and(|password| password.contains(char::is_control))
    {
        return whole;
    }
    (format!("{scheme}://{host}{}", &rest[authority.len()..]), Some(login))
}

impl Login {
    /// Environment variables that pass the login to git, in addition to settings that `environment`
    /// already passes.
    pub(super) fn variables(self, environment: &[(OsString, OsString)]) -> Vec<(String, String)> {
        let mut settings = vec![("credential.username", self.user)];
        if self.password.is_some() {
            // It takes precedence over the user's own helpers, as a login in a URL does.
            settings.push(("credential.helper", String::new()));
            settings.push(("credential.helper", HELPER.to_owned()));
        }
        let count = environment.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT");
        let count = count.and_then(|(_, value)| value.to_str()?.parse::<usize>().ok()).unwrap_or(0);
        let mut variables: Vec<_> =
            self.password.map(|password| (PASSWORD.to_owned(), password)).into_iter().collect();
        variables.push(("GIT_CONFIG_COUNT".to_owned(), (count + settings.len()).to_string()));
        for (at, (key, value)) in (count..).zip(settings) {
            variables.push((format!("GIT_CONFIG_KEY_{at}"), key.to_owned()));
            variables.push((format!("GIT_CONFIG_VALUE_{at}"), value));
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_removed_from_urls() {
        let login = |user: &str, password: Option<&str>| {
            Some(Login { user: user.to_owned(), password: password.map(str::to_owned) })
        };
        for (url, bare, expected) in [
            ("https://host/a", "https://host/a", None),
            ("https://me:pw@host:8443/a?b", "https://host:8443/a?b", login("me", Some("pw"))),
            ("https://token@host/a", "https://host/a", login("token", None)),
            ("https://m%40e:p%3Aw:@w@host", "https://host", login("m@e", Some("p:w:@w"))),
            ("https://:pw@host/a@b", "https://host/a@b", login("", Some("pw"))),
            ("ssh://git@host/a", "ssh://git@host/a", None),
            ("git@host:a", "git@host:a", None),
            ("https://me:p%0Aw@host/a", "https://me:p%0Aw@host/a", None),
        ] {
            assert_eq!(apart(url), (bare.to_owned(), expected), "{url}");
        }
    }

    #[test]
    fn existing_settings_are_kept() {
        let variables = |environment: &[(&str, &str)]| {
            let login = Login { user: "me".to_owned(), password: None };
            let environment: Vec<_> =
                environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
            login.variables(&environment)
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (environment, count, at) in [
            (&[][..], "1", 0),
            (&[("GIT_CONFIG_COUNT", "2")], "3", 2),
            (&[("GIT_CONFIG_COUNT", "x")], "1", 0),
        ] {
            let expected = [
                pair("GIT_CONFIG_COUNT", count),
                pair(&format!("GIT_CONFIG_KEY_{at}"), "credential.username"),
                pair(&format!("GIT_CONFIG_VALUE_{at}"), "me"),
            ];
            assert_eq!(variables(environment), expected, "{environment:?}");
        }
    }
}
