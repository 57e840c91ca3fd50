//! A page of protobuf, whose objects are decoded while it arrives.

use futures::channel::mpsc::UnboundedSender;

use super::sink::{Next, Sink};
use crate::answer::Receive;
use crate::decode::Encoded;
use crate::decode::protobuf::page::PageReader;
use crate::{Error, Kind};

/// One attempt to fetch a page. What it has decoded counts only when the page is complete.
pub(super) struct Portion<S> {
    kind: Kind,
    pub(super) reader: PageReader,
    /// The objects of this page.
    pub(super) sink: S,
    /// The number of decoded objects.
    pub(super) taken: usize,
    /// The error of the first object that could not be decoded. The rest is only received: an error
    /// of the page comes first.
    pub(super) failure: Option<Error>,
    /// Where the token of the next page is reported, until it was; and the index of this page.
    report: Option<(UnboundedSender<Next>, usize)>,
}

impl<S> Portion<S> {
    pub(super) fn new(kind: Kind, page: usize, sink: S, report: &UnboundedSender<Next>) -> Self {
        // Without a token, a second attempt may read a newer version of the list.
        let report = (page > 0).then(|| (report.clone(), page));
        Self { kind, reader: PageReader::default(), sink, taken: 0, failure: None, report }
    }
}

impl<S: Sink> Receive for Portion<S> {
    fn take(&mut self, bytes: &[u8]) {
        let Self { kind, reader, sink, taken, failure, report } = self;
        reader.take(bytes, |object| {
            if failure.is_none() {
                *failure = sink.object(*kind, *taken, Encoded::Protobuf(object)).err();
                *taken += 1;
            }
        });
        if let Some(metadata) = reader.metadata()
            && let Some((report, page)) = report.take()
        {
            // The receiver is dropped when reading was cancelled.
            let _ = report.unbounded_send(Next { page, token: metadata.next.clone() });
        }
    }

    fn is_cut(&self) -> bool {
        self.reader.is_cut()
    }
}
