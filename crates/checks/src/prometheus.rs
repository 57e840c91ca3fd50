//! A range query: `POST /api/v1/query_range` of the HTTP API of Prometheus.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::address::Address;
use super::placeholders;
use super::problem::Problem;
use super::quoted::quoted;
use super::transport::Transport;
use daemonset::model::{CheckQuestion, CheckSeries, Series};

const PATH: &str = "/api/v1/query_range";
/// Series at most: one for each node of a large fleet.
const MOST_SERIES: usize = 5_000;
/// Warnings that are kept.
const MOST_WARNINGS: usize = 10;
/// Milliseconds by which a point may lie outside of the range: servers may round.
const TOLERANCE: i64 = 1_000;

/// Asks `query` of the server at `address`.
pub(crate) async fn ask(
    transport: &Transport,
    address: &str,
    query: &str,
    question: &CheckQuestion,
) -> Result<CheckSeries, Problem> {
    let to = Address::read(address)?.join(PATH)?;
    let request = request(&placeholders::fill(query, question)?, question);
    let head = transport.send(request, &to, None).await?;
    let (status, is_success) = (head.status(), head.is_success());
    let body = head.body().await;
    if !is_success {
        // A body that cannot be read explains nothing.
        return Err(refusal(status, &body.unwrap_or_default(), &to));
    }
    read(&body?, question, &to)
}

fn request(query: &str, question: &CheckQuestion) -> Request<String> {
    let step = question.step();
    // A range that has just begun has one point.
    let until = question.until.max(question.from);
    let from = question.times(step).next().unwrap_or(until);
    let (from, until, step) = (from.to_string(), until.to_string(), step.to_string());
    let fields = [("query", query), ("start", &from), ("end", &until), ("step", &step)];
    let fields = fields
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    let mut request = Request::new(fields.join("&"));
    *request.method_mut() = Method::POST;
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(CONTENT_TYPE, form);
    request
}

/// The outer form of every answer.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(default, rename = "errorType")]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, rename = "resultType")]
    result_type: Cow<'a, str>,
    /// Its form depends on the type.
    #[serde(borrow)]
    result: &'a RawValue,
}

/// One series of a `matrix`.
#[derive(Deserialize)]
struct Row<'a> {
    metric: BTreeMap<String, String>,
    /// Numbers are written as strings, so that NaN and infinities have a form.
    #[serde(borrow, default)]
    values: Vec<(f64, Cow<'a, str>)>,
    #[serde(borrow, default)]
    histograms: Option<&'a RawValue>,
}

/// The series in the body of a 2xx answer.
fn read(body: &[u8], question: &CheckQuestion, from: &Address) -> Result<CheckSeries, Problem> {
    let malformed = |reason: String| Problem::Malformed { at: from.to_string(), reason };
    let Envelope { status, data, error_type, error, warnings } = decode(body, from)?;
    if status != "success" {
        let (kind, message) = (quoted(&error_type), quoted(&error));
        return Err(Problem::Refused { at: from.to_string(), kind, message });
    }
    let data = data.ok_or_else(|| malformed("no data".to_owned()))?;
    if data.result_type != "matrix" {
        return Err(malformed(format!("a {}, not a matrix", quoted(&data.result_type))));
    }
    let rows: Vec<Row<'_>> = decode(data.result.get().as_bytes(), from)?;
    if rows.len() > MOST_SERIES {
        let (at, found, limit) = (from.to_string(), rows.len(), MOST_SERIES);
        return Err(Problem::ManySeries { at, found, limit });
    }
    let series = rows.into_iter().map(|row| series(row, question));
    let series = series.collect::<Result<_, String>>().map_err(malformed)?;
    let warnings = warnings.unwrap_or_default().into_iter().take(MOST_WARNINGS);
    let warnings = warnings.map(|warning| quoted(&warning)).collect();
    Ok(CheckSeries { step: question.step(), series, warnings })
}

/// The series of a row; the error is what is wrong with it.
fn series(row: Row<'_>, question: &CheckQuestion) -> Result<Series, String> {
    let Row { metric, values, histograms } = row;
    if histograms.is_some() {
        return Err("a native histogram, not a number; let the query take a quantile".to_owned());
    }
    let from = question.from.as_millisecond() - TOLERANCE;
    let until = question.until.max(question.from).as_millisecond() + TOLERANCE;
    let mut points = Vec::with_capacity(values.len());
    let mut last = i64::MIN;
    for (seconds, value) in values {
        let at = milliseconds(seconds).filter(|at| (from..=until).contains(at) && *at > last);
        let at = at.ok_or("points outside of the range, or not in order of time")?;
        last = at;
        let at = Timestamp::from_millisecond(at).map_err(|error| error.to_string())?;
        let value = value.parse().map_err(|_| format!("`{}` is not a number", quoted(&value)))?;
        points.push((at, value));
    }
    let labels = metric.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(Series { labels, points })
}

/// Seconds since 1970 as whole milliseconds; none if they are no time.
fn milliseconds(seconds: f64) -> Option<i64> {
    let milliseconds = (seconds * 1000.0).round();
    // Of what jiff can hold, the last second is in the year 9999.
    let range = 0.0..=253_402_207_200_000.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range has whole numbers of 48 bits")]
    range.contains(&milliseconds).then_some(milliseconds as i64)
}

/// Decodes JSON. The parser's own message quotes the answer, so it is cut and made harmless.
fn decode<'a, T: Deserialize<'a>>(json: &'a [u8], from: &Address) -> Result<T, Problem> {
    let at = || from.to_string();
    if json.trim_ascii_start().first() == Some(&b'<') {
        return Err(Problem::Page { at: at() });
    }
    let text = str::from_utf8(json);
    let text = text.map_err(|_| Problem::Malformed { at: at(), reason: "not UTF-8".to_owned() })?;
    serde_json::from_str(text)
        .map_err(|error| Problem::Malformed { at: at(), reason: quoted(&error.to_string()) })
}

/// What an answer that is not 2xx says.
fn refusal(status: u16, body: &[u8], from: &Address) -> Problem {
    let at = from.to_string();
    if matches!(status, 401 | 403) {
        return Problem::NoToken { at, host: from.host().to_owned(), status };
    }
    match serde_json::from_slice::<Envelope<'_>>(body) {
        Ok(Envelope { error_type, error, .. }) if !error.is_empty() => {
            Problem::Refused { at, kind: quoted(&error_type), message: quoted(&error) }
        }
        _ => Problem::Status { at, status },
    }
}

#[cfg(test)]
mod tests;
