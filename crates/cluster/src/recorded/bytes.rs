//! Turns the bytes of a file into UTF-8 text: gzip, byte-order marks, and detection of JSON or
//! YAML.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use crate::Error;

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
}

/// The size of the read buffer, in bytes.
const BUFFER: usize = 1 << 16;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Decompresses `reader` when it is gzip (by its first bytes, regardless of the file's name), skips
/// a byte-order mark, and detects the format by the first character.
///
/// # Errors
/// The bytes cannot be read, are empty, or are not UTF-8.
pub(super) fn plain<'r>(
    reader: impl Read + 'r,
    file: &Arc<str>,
) -> Result<(Format, Box<dyn BufRead + 'r>), Error> {
    let mut raw = BufReader::with_capacity(BUFFER, reader);
    let is_gzip = first(&mut raw, file)?.starts_with(&GZIP);
    let mut text: Box<dyn BufRead + 'r> = if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw)))
    } else {
        Box::new(raw)
    };
    let beginning = first(&mut text, file)?;
    if let Some(encoding) = foreign_encoding(beginning) {
        return Err(Error::Encoding { file: Arc::clone(file), encoding });
    }
    if beginning.starts_with(&UTF8_MARK) {
        text.consume(UTF8_MARK.len());
    }
    let format = format(&mut text, file)?;
    Ok((format, text))
}

/// Skips whitespace; the next character is `{` in JSON, and any other in YAML.
fn format(text: &mut dyn BufRead, file: &Arc<str>) -> Result<Format, Error> {
    loop {
        let buffer = first(text, file)?;
        match buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
            Some(at) if buffer[at] == b'{' => return Ok(Format::Json),
            // Whitespace is significant in YAML and stays.
            Some(_) => return Ok(Format::Yaml),
            None => {
                let blanks = buffer.len();
                text.consume(blanks);
            }
        }
    }
}

fn first<'b>(reader: &'b mut dyn BufRead, file: &Arc<str>) -> Result<&'b [u8], Error> {
    let buffer = reader.fill_buf().map_err(|source| reading(file, source))?;
    if buffer.is_empty() { Err(Error::Empty { file: Arc::clone(file) }) } else { Ok(buffer) }
}

/// Detects UTF-16 and UTF-32. In Windows PowerShell, `>` writes UTF-16.
fn foreign_encoding(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => Some("UTF-16"),
        _utf8 => None,
    }
}

/// Maps an error of reading bytes, plain or compressed.
pub(super) fn reading(file: &Arc<str>, source: std::io::Error) -> Error {
    let file = Arc::clone(file);
    match source.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::CutOff { file, at: None },
        // flate2 reports invalid gzip this way, and the YAML reader invalid UTF-8.
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
            Error::Damaged { file, reason: source.to_string() }
        }
        _ => Error::Read { file, source },
    }
}
