//! Sends objects in batches to the threads that decode them.
//!
//! One thread reads and splits the text into objects, which is several times as fast as decoding.
//! The reported error is always the first one of the recording, regardless of the other threads.

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
use crate::{Error, Kind};

/// The size of a batch in bytes; objects are never split.
const BATCH: usize = 256 << 10;

/// The limit of decoder threads. More would have to wait for the thread that reads.
const MOST_THREADS: usize = 6;

/// Consecutive objects.
#[derive(Debug, Default)]
struct Batch {
    /// The number of the batch, in reading order.
    number: usize,
    /// The text of the objects, without anything between them.
    text: Vec<u8>,
    objects: Vec<Object>,
}

/// One object of a batch.
#[derive(Debug)]
struct Object {
    /// The kind, if the list is typed.
    of: Option<Kind>,
    /// The index in the list, from 0.
    index: usize,
    /// The position of its first byte in the file.
    place: Place,
    /// The end in the batch's text.
    end: usize,
}

/// The decoder threads, and the batch that is being filled.
pub(super) struct Decoders<'scope> {
    filling: Batch,
    batches: SyncSender<Batch>,
    /// Decoded batches, whose buffers are reused.
    used: Receiver<Batch>,
    threads: Vec<ScopedJoinHandle<'scope, Decoded>>,
    /// Whether an object could not be decoded: later objects do not matter.
    failed: Arc<AtomicBool>,
}

/// The result of one thread.
struct Decoded {
    intake: Intake,
    /// The first error, and the number of its batch.
    failure: Option<(usize, Error)>,
}

impl<'scope> Decoders<'scope> {
    /// Starts one thread per core, up to a limit.
    pub(super) fn start<'env>(scope: &'scope Scope<'scope, 'env>, file: &Arc<str>) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let count = cores.min(MOST_THREADS);
        let (batches, received) = sync_channel(count);
        let received = Arc::new(Mutex::new(received));
        let (return_buffer, used) = sync_channel(2 * count);
        let failed = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|_| {
            let mut decoder = Decoder {
                file: Arc::clone(file),
                intake: Intake::new(Arc::clone(file)),
                failed: Arc::clone(&failed),
            };
            let (received, return_buffer) = (Arc::clone(&received), return_buffer.clone());
            scope.spawn(move || Decoded {
                failure: decoder.run(&received, &return_buffer),
                intake: decoder.intake,
            })
        });
        Self { filling: Batch::default(), batches, used, threads: threads.collect(), failed }
    }

    /// Appends to the text of the object that is being read.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.filling.text.extend_from_slice(text);
    }

    /// The text so far of the object that is being read.
    pub(super) fn unfinished(&self) -> &[u8] {
        &self.filling.text[self.filling.objects.last().map_or(0, |object| object.end)..]
    }

    /// Completes the object that is being read.
    pub(super) fn complete(&mut self, of: Option<Kind>, index: usize, place: Place) {
        let end = self.filling.text.len();
        self.filling.objects.push(Object { of, index, place, end });
        if end >= BATCH {
            self.send();
        }
    }

    /// Whether a thread has failed, so that reading can stop.
    pub(super) fn have_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn send(&mut self) {
        let mut next = self.used.try_recv().unwrap_or_default();
        next.text.clear();
        next.objects.clear();
        next.number = self.filling.number + 1;
        let full = std::mem::replace(&mut self.filling, next);
        // The threads live as long as the sender.
        let _ = self.batches.send(full);
    }

    /// Waits for the threads and collects their objects, without an unfinished one.
    ///
    /// # Errors
    /// The first object of the recording that could not be decoded.
    pub(super) fn finish(mut self, all: &mut Intake) -> Result<(), Error> {
        self.send();
        drop(self.batches);
        let mut first: Option<(usize, Error)> = None;
        for thread in self.threads {
            let decoded = thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
            all.merge(decoded.intake);
            let failures = first.into_iter().chain(decoded.failure);
            first = failures.min_by_key(|(batch, _)| *batch);
        }
        first.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The work of one thread.
struct Decoder {
    file: Arc<str>,
    intake: Intake,
    failed: Arc<AtomicBool>,
}

impl Decoder {
    /// Decodes batches until there are no more. After an error, the rest is received but not
    /// decoded.
    fn run(
        &mut self,
        batches: &Mutex<Receiver<Batch>>,
        used: &SyncSender<Batch>,
    ) -> Option<(usize, Error)> {
        let mut failure = None;
        loop {
            let received = batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(batch) = received else { return failure };
            // Batches arrive in order: a thread's first error has its lowest batch number.
            if failure.is_none()
                && let Err(error) = self.decode(&batch)
            {
                self.failed.store(true, Ordering::Relaxed);
                failure = Some((batch.number, error));
            }
            // If it is not needed for reuse, it is dropped.
            let _ = used.try_send(batch);
        }
    }

    fn decode(&mut self, batch: &Batch) -> Result<(), Error> {
        // Check UTF-8 for the whole batch, which is faster; on an error, check each object.
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
                reason: object.place.message("invalid unicode code point"),
            })?;
            self.object(object, text)?;
        }
        Ok(())
    }

    fn object(&mut self, object: &Object, json: &str) -> Result<(), Error> {
        let Err(error) = self.intake.take(object.of, object.index, json) else { return Ok(()) };
        // Report a syntax error rather than an invalid object.
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
