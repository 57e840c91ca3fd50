//! Objects on their way to the threads that decode them.
//!
//! One thread reads and finds the borders, which is several times as fast as decoding. Whatever
//! the others do at the same time, the error that is told is the first one of the recording.

use std::num::NonZero;
use std::panic;
use std::str;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use serde::de::IgnoredAny;

use super::intake::Intake;
use super::place::Place;
use crate::cluster::{Error, Kind};

/// A batch is sent off when it has so many bytes; an object is never cut.
const BATCH: usize = 256 << 10;

/// More of them would have to wait for the thread that reads.
const MOST_THREADS: usize = 6;

/// Some objects, one after the other.
#[derive(Debug, Default)]
struct Batch {
    /// Its place among all batches.
    number: usize,
    /// The text of the objects, without anything between them.
    text: Vec<u8>,
    objects: Vec<Object>,
}

/// One object of a batch.
#[derive(Debug)]
struct Object {
    /// What it is when its list says so.
    of: Option<Kind>,
    /// Its place in the list, from 0.
    index: usize,
    /// Where its first byte stands.
    place: Place,
    /// Where it ends in the batch's text.
    end: usize,
}

/// The threads that decode, and the batch that is next for them.
pub(super) struct Decoders<'scope> {
    filling: Batch,
    batches: SyncSender<Batch>,
    /// Batches that were decoded, to be filled again.
    used: Receiver<Batch>,
    threads: Vec<ScopedJoinHandle<'scope, Decoded>>,
    /// Whether an object could not be decoded: nothing after it counts any more.
    failed: Arc<AtomicBool>,
}

/// What one thread has decoded.
struct Decoded {
    intake: Intake,
    /// The first error, and the number of its batch.
    failure: Option<(usize, Error)>,
}

impl<'scope> Decoders<'scope> {
    /// One thread a core.
    pub(super) fn start<'env>(scope: &'scope Scope<'scope, 'env>, file: &Arc<str>) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let count = cores.min(MOST_THREADS);
        let (batches, received) = sync_channel(count);
        let received = Arc::new(Mutex::new(received));
        let (give_back, used) = sync_channel(2 * count);
        let failed = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|_| {
            let mut decoder = Decoder {
                file: Arc::clone(file),
                intake: Intake::new(Arc::clone(file)),
                failed: Arc::clone(&failed),
            };
            let (received, give_back) = (Arc::clone(&received), give_back.clone());
            scope.spawn(move || Decoded {
                failure: decoder.run(&received, &give_back),
                intake: decoder.intake,
            })
        });
        Self { filling: Batch::default(), batches, used, threads: threads.collect(), failed }
    }

    /// Adds to the text of the object that is being read.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.filling.text.extend_from_slice(text);
    }

    /// The text of the object that is being read, as far as it was read.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.filling.text[self.filling.objects.last().map_or(0, |object| object.end)..]
    }

    /// The object that is being read is complete.
    pub(super) fn complete(&mut self, of: Option<Kind>, index: usize, place: Place) {
        let end = self.filling.text.len();
        self.filling.objects.push(Object { of, index, place, end });
        if end >= BATCH {
            self.send();
        }
    }

    /// Whether reading on is of no use.
    pub(super) fn have_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn send(&mut self) {
        let mut next = self.used.try_recv().unwrap_or_default();
        next.text.clear();
        next.objects.clear();
        next.number = self.filling.number + 1;
        let full = std::mem::replace(&mut self.filling, next);
        // Its threads live as long as the sender.
        let _ = self.batches.send(full);
    }

    /// Everything that was decoded. An object that is being read is not part of it.
    ///
    /// # Errors
    /// The first object of the recording that could not be decoded.
    pub(super) fn finish(mut self, all: &mut Intake) -> Result<(), Error> {
        self.send();
        drop(self.batches);
        let mut first: Option<(usize, Error)> = None;
        for thread in self.threads {
            let decoded = thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            all.absorb(decoded.intake);
            let failures = first.into_iter().chain(decoded.failure);
            first = failures.min_by_key(|(batch, _)| *batch);
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// One thread's work.
struct Decoder {
    file: Arc<str>,
    intake: Intake,
    failed: Arc<AtomicBool>,
}

impl Decoder {
    /// Decodes batches until there are no more. After an error the rest is only taken off.
    fn run(
        &mut self,
        batches: &Mutex<Receiver<Batch>>,
        used: &SyncSender<Batch>,
    ) -> Option<(usize, Error)> {
        let mut failure = None;
        loop {
            let received = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = received else { return failure };
            // Later batches have higher numbers: the first error of a thread stays its first.
            if failure.is_none()
                && let Err(error) = self.decode(&batch)
            {
                self.failed.store(true, Ordering::Relaxed);
                failure = Some((batch.number, error));
            }
            // If nobody wants it back, it is dropped.
            let _ = used.try_send(batch);
        }
    }

    fn decode(&mut self, batch: &Batch) -> Result<(), Error> {
        // Checked at once, because that is faster; where it is wrong is found object by object.
        let whole = str::from_utf8(&batch.text).ok();
        let mut start = 0;
        for object in &batch.objects {
            let range = start..object.end;
            start = object.end;
            if let Some(whole) = whole {
                self.object(object, &whole[range])?;
                continue;
            }
            let text = str::from_utf8(&batch.text[range]).map_err(|_| Error::Syntax {
                file: Arc::clone(&self.file),
                format: "JSON",
                reason: object.place.said("invalid unicode code point"),
            })?;
            self.object(object, text)?;
        }
        Ok(())
    }

    fn object(&mut self, object: &Object, json: &str) -> Result<(), Error> {
        let Err(error) = self.intake.take(object.of, object.index, json) else { return Ok(()) };
        // What is not JSON cannot be blamed on the object's shape.
        match serde_json::from_str::<IgnoredAny>(json) {
            Ok(_) => Err(error),
            Err(syntax) => Err(Error::Syntax {
                file: Arc::clone(&self.file),
                format: "JSON",
                reason: object.place.of_error(&syntax),
            }),
        }
    }
}
