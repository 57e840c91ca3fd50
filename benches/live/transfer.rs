//! A bare transfer: all pages of all lists of a plan, one after the other on one connection. The
//! objects are dropped unread.

use std::time::{Duration, Instant};

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;

use super::control_plane::harness::{ControlPlane, block_on};

/// The lists of a plan.
const LISTS: [&str; 7] = [
    "/api/v1/namespaces?limit=500",
    "/api/v1/nodes?limit=500",
    "/apis/apps/v1/daemonsets?limit=500",
    "/apis/apps/v1/controllerrevisions?limit=500",
    "/api/v1/pods?limit=500",
    "/api/v1/services?limit=500",
    "/apis/coordination.k8s.io/v1/leases?limit=500&fieldSelector=metadata.namespace!%3Dkube-node-lease",
];

/// The format of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Protobuf,
}

/// Whether the server compresses its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
}

/// Transfers all lists. Returns the time, and the bytes after decompression.
pub(crate) fn transfer(
    plane: &ControlPlane,
    format: Format,
    encoding: Encoding,
) -> (Duration, u64) {
    let client = plane.client();
    block_on(async move {
        let start = Instant::now();
        let mut bytes = 0;
        for list in LISTS {
            bytes += pages(&client, list, format, encoding).await;
        }
        (start.elapsed(), bytes)
    })
}

async fn pages(client: &Client, list: &str, format: Format, encoding: Encoding) -> u64 {
    let accept = match format {
        Format::Json => "application/json",
        Format::Protobuf => "application/vnd.kubernetes.protobuf",
    };
    let encoding = match encoding {
        Encoding::Identity => "identity",
        Encoding::Gzip => "gzip",
    };
    let (mut bytes, mut token) = (0u64, String::new());
    loop {
        let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
        let request = http::Request::get(format!("{list}{next}"))
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, encoding)
            .body(Body::empty())
            .unwrap();
        let mut body = client.send(request).await.unwrap().into_body();
        let mut beginning = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.unwrap().into_data() else { continue };
            bytes += data.len() as u64;
            if beginning.len() < 4_096 {
                beginning.extend_from_slice(&data);
            }
        }
        match continue_token(&beginning) {
            Some(next) => token = next,
            None => return bytes,
        }
    }
}

/// The `continue` token in the beginning of a page. Tokens are base64 of `{"v":"meta.k8s.io/v1"`,
/// in both formats.
fn continue_token(page: &[u8]) -> Option<String> {
    const BEGINNING: &[u8] = b"eyJ2IjoibWV0YS5rOHMuaW8v";
    let start = page.windows(BEGINNING.len()).position(|it| it == BEGINNING)?;
    let is_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let token: Vec<u8> = page[start..].iter().take_while(is_token).copied().collect();
    // A list of protobuf has the number of remaining items next, which is not text.
    Some(String::from_utf8(token).unwrap())
}
