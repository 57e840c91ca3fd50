//! One `GET`, of which only the status counts; the body is never read.

use http::Request;

use super::address::Address;
use super::problem::Problem;
use super::transport::Transport;
use daemonset::model::{CheckQuestion, CheckResponse};

/// Asks `url` and compares the status of the answer.
pub(crate) async fn ask(
    transport: &Transport,
    url: &str,
    expected: u16,
    question: &CheckQuestion,
) -> Result<CheckResponse, Problem> {
    let to = Address::read(url)?;
    let status = transport.send(Request::new(String::new()), &to, Some(expected)).await?.status();
    Ok(CheckResponse::Sample {
        at: question.until,
        is_expected: status == expected,
        detail: format!("status {status}"),
    })
}
