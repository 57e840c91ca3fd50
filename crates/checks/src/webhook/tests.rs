// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const SECRET: &[u8] = b"it is a shared secret";

#[test]
fn signatures_are_those_of_rfc_4231() {
    for (key, body, want) in [
        (
            &[0x0b; 20][..],
            &b"Hi There"[..],
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ] {
        assert_eq!(SigningKey::of(key).signature(body), format!("sha256={want}"));
    }
}

#[test]
fn a_secret_is_long_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    assert!(SigningKey::read(&file).is_err(), "missing");
    for content in ["", " \n", "hunter2", "hunter2-hunter2\n"] {
        fs::write(&file, content).unwrap();
        let error = SigningKey::read(&file).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    fs::write(&file, "hunter2-hunter2-\n").unwrap();
    let key = SigningKey::read(&file).unwrap();
    assert_eq!(key.signature(b"x"), SigningKey::of(b"hunter2-hunter2-").signature(b"x"));
    assert_eq!(format!("{key:?}"), "SigningKey");
}

#[test]
fn an_address_that_is_none_is_not_shown() {
    for (url, want) in [
        ("hooks.example/SECRET", "an address such as"),
        ("ftp://hooks.example/SECRET", "an address such as"),
        ("http://hooks.example/SECRET", "use https for hooks.example"),
        ("https://me:SECRET@hooks.example/", "contains a user name"),
    ] {
        let error = Webhook::new(url, SigningKey::of(SECRET), crate::TIME_LIMIT).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(want) && !error.contains("SECRET"), "{url}: {error}");
    }
}

/// Answers each connection with the next of these, the last one again and again; returns the URL, and
/// the number of connections so far.
async fn answering(answers: Vec<&'static str>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    tokio::spawn(async move {
        let mut answers = answers.into_iter().peekable();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = *answers.peek().unwrap();
            if answers.len() > 1 {
                answers.next();
            }
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (format!("http://127.0.0.1:{port}/SECRET/path?token=SECRET"), attempts)
}

const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
const NOT: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: https://evil.example/SECRET\r\n\r\n";
const HERE: &str = "HTTP/1.1 308 P\r\nLocation: /SECRET\r\n\r\n";

async fn expect_posted(answers: Vec<&'static str>, attempts: usize, want: Option<&str>) {
    let case = format!("{answers:?}");
    let (url, made) = answering(answers).await;
    let limit = Duration::from_secs(5);
    let webhook = Webhook::new(&url, SigningKey::of(SECRET), limit).unwrap();
    let begun = tokio::time::Instant::now();
    let posted = webhook.post("{}").await.map_err(|error| error.to_string());
    let lasted = begun.elapsed();
    let failed = posted.as_ref().err().map(String::as_str);
    assert_eq!(failed.is_some(), want.is_some(), "{case}: {posted:?}");
    let shown = failed.unwrap_or_default();
    assert!(shown.contains(want.unwrap_or_default()), "{case}: {shown}");
    assert!(!shown.contains("SECRET") && !shown.contains('\x1b'), "{case}: {shown}");
    assert_eq!(made.load(Ordering::Relaxed), attempts, "{case}");
    // It lasts longer on a busy machine, but never less.
    assert!(lasted >= RETRY_DELAYS[..attempts - 1].iter().sum(), "{case}: {lasted:?}");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_the_url_is_not_shown() {
    let mut cases = tokio::task::JoinSet::new();
    for (answers, attempts, want) in [
        (vec![OK], 1, None),
        (vec![BUSY, OK], 2, None),
        (vec![BUSY, "", BUSY, OK], 4, None),
        (vec![BUSY], 4, Some("answered with status 503")),
        (vec!["SSH-2.0\r\n"], 4, Some("broke off its answer")),
        (vec![NOT, OK], 1, Some("answered with status 404")),
        (vec![MOVED, OK], 1, Some("to https://evil.example, which is not followed")),
        (vec![HERE, OK], 1, Some("to a path, which is not followed")),
    ] {
        cases.spawn(expect_posted(answers, attempts, want));
    }
    // A case that fails panics here.
    cases.join_all().await;
}
