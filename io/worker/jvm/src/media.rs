// SPDX-License-Identifier: Apache-2.0
//! Media jobs of bundles, by number: what the natives of `org.netserv.host.media.MediaNative` do.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::media::{MediaOutcome, MediaTask};
use netserv_worker_base::limits::MEDIA_OUTPUT_BYTES_MAX;
use netserv_worker_base::media::description::Description;
use netserv_worker_base::media::{Desk, Ending, JobHandle, desk};

/// The jobs of a process that bundles have.
pub struct JavaJobs {
    desk: &'static Desk,
    jobs: Mutex<BTreeMap<i64, Arc<JavaJob>>>,
    output_bytes_max: u64,
}

struct JavaJob {
    ticket: JobHandle,
    input: Mutex<Option<File>>,
    picture: Mutex<Option<File>>,
    /// Where each output comes from, and how many bytes it may still give.
    outputs: Vec<Mutex<(File, u64)>>,
}

/// One of the pipes that a job is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Into {
    /// Its input.
    Input,
    /// The picture that is laid over others.
    Picture,
}

/// Returns the jobs of this process.
pub fn java_jobs() -> &'static JavaJobs {
    static JOBS: LazyLock<JavaJobs> = LazyLock::new(|| JavaJobs::new(desk(), MEDIA_OUTPUT_BYTES_MAX));
    &JOBS
}

impl JavaJobs {
    /// Returns an empty set, whose jobs are asked for at `desk` and give so many bytes at most.
    pub fn new(desk: &'static Desk, output_bytes_max: u64) -> JavaJobs {
        JavaJobs { desk, jobs: Mutex::default(), output_bytes_max }
    }

    /// Asks for a job, told in JSON, and waits until it runs. Returns its number.
    ///
    /// # Errors
    /// Why it does not run.
    pub fn start(&self, slot: ModuleSlot, task: &str) -> Result<i64, Ending> {
        let task: MediaTask =
            serde_json::from_str(task).map_err(|error| Ending::new(MediaOutcome::Invalid, error.to_string()))?;
        let ticket = self.desk.ask(slot, task)?;
        let ends = ticket.wait_started()?;
        let number = i64::try_from(ticket.number()).unwrap_or(i64::MAX);
        let bytes_max = ticket.output_bytes_max(self.output_bytes_max);
        let job = JavaJob {
            ticket,
            input: Mutex::new(Some(ends.input.into())),
            picture: Mutex::new(ends.picture.map(File::from)),
            outputs: ends.outputs.into_iter().map(|end| Mutex::new((end.into(), bytes_max))).collect(),
        };
        self.lock().insert(number, Arc::new(job));
        Ok(number)
    }

    /// Writes bytes to a job; waits until there is room.
    ///
    /// # Errors
    /// The job takes no more.
    pub fn write(&self, number: i64, to: Into, bytes: &[u8]) -> io::Result<()> {
        let job = self.get(number)?;
        let mut pipe = job.pipe(to);
        pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes)
    }

    /// Says that a job's input, or picture, is at its end.
    pub fn close_input(&self, number: i64, to: Into) {
        if let Ok(job) = self.get(number) {
            *job.pipe(to) = None;
        }
    }

    /// Reads the output of a job in a place; waits until there is some. Returns 0 at its end.
    ///
    /// # Errors
    /// There is none in that place, it cannot be read, or is too large; the job ends then.
    pub fn read(&self, number: i64, place: usize, into: &mut [u8]) -> io::Result<usize> {
        let job = self.get(number)?;
        let output = job.outputs.get(place).ok_or(io::ErrorKind::NotFound)?;
        let (pipe, left) = &mut *output.lock().unwrap_or_else(PoisonError::into_inner);
        let length = pipe.read(into)?;
        let wide = u64::try_from(length).unwrap_or(u64::MAX);
        if wide > *left {
            job.ticket.cancel();
            return Err(io::Error::other("the output is too large"));
        }
        *left -= wide;
        Ok(length)
    }

    /// Ends a job if it has not ended, so that nobody waits for it any longer.
    pub fn cancel(&self, number: i64) {
        if let Ok(job) = self.get(number) {
            job.ticket.cancel();
        }
    }

    /// Waits until a job ended.
    pub fn wait_ended(&self, number: i64) -> Ending {
        match self.get(number) {
            Ok(job) => job.ticket.wait_ended(),
            Err(error) => Ending::new(MediaOutcome::Invalid, error.to_string()),
        }
    }

    /// Forgets a job, and ends it if it has not ended.
    pub fn release(&self, number: i64) {
        self.cancel(number);
        self.lock().remove(&number);
    }

    fn get(&self, number: i64) -> io::Result<Arc<JavaJob>> {
        self.lock().get(&number).cloned().ok_or_else(|| io::Error::other("there is no such job"))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Arc<JavaJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JavaJob {
    fn pipe(&self, which: Into) -> MutexGuard<'_, Option<File>> {
        let pipe = match which {
            Into::Input => &self.input,
            Into::Picture => &self.picture,
        };
        pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns how a job ended as one line: its word, then the detail.
pub fn line(ending: &Ending) -> String {
    format!("{} {}", ending.outcome.as_str(), ending.detail)
}

/// Returns what `ffprobe` wrote as lines: the format, the milliseconds, then each stream's kind, codec and two numbers.
///
/// # Errors
/// It is not what `ffprobe` writes.
pub fn describe(json: &[u8]) -> Result<String, String> {
    let Description { format, duration_ms, video, audio } = Description::parse(json)?;
    let mut lines = format!("{format}\n{duration_ms}");
    let streams = video.iter().map(|one| ("video", one)).chain(audio.iter().map(|one| ("audio", one)));
    for (kind, (codec, first, second)) in streams {
        lines += &format!("\n{kind} {codec} {first} {second}");
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use netserv_wire::container::frames::FromWorker;

    use super::*;

    const TASK: &str = r#"{"probe":{"source":"any"}}"#;

    #[test]
    fn a_job_of_a_bundle_is_written_and_read() {
        let (jobs, desk) = jobs(5);
        let (their_input, input) = rustix::pipe::pipe().unwrap();
        let (output, their_output) = rustix::pipe::pipe().unwrap();
        let node = std::thread::spawn(move || {
            let Some(FromWorker::Media { job, .. }) = wish(desk) else { panic!("a job is wanted") };
            desk.handle_started(job, vec![input, output]);
            job
        });
        let number = jobs.start(ModuleSlot(1), TASK).unwrap();
        assert_eq!(node.join().unwrap(), u64::try_from(number).unwrap());
        jobs.write(number, Into::Input, b"in").unwrap();
        assert!(jobs.write(number, Into::Picture, b"x").is_err(), "it has none");
        jobs.close_input(number, Into::Input);
        assert!(jobs.write(number, Into::Input, b"x").is_err());
        let mut read = String::new();
        File::from(their_input).read_to_string(&mut read).unwrap();
        assert_eq!(read, "in");
        File::from(their_output).write_all(b"1234567").unwrap();
        let mut into = [0; 4];
        assert_eq!((jobs.read(number, 0, &mut into).unwrap(), &into), (4, b"1234"));
        assert_eq!(jobs.read(number, 1, &mut into).unwrap_err().kind(), io::ErrorKind::NotFound, "it has one output");
        assert!(jobs.read(number, 0, &mut into).is_err(), "two too many");
        assert_eq!(jobs.wait_ended(number).outcome, MediaOutcome::Cancelled);
        jobs.release(number);
        assert!(jobs.read(number, 0, &mut into).is_err());
    }

    #[test]
    fn what_is_no_job_is_refused() {
        let (jobs, _) = jobs(5);
        for task in ["", "{}", r#"{"probe":{"source":"concat"}}"#] {
            assert_eq!(jobs.start(ModuleSlot(1), task).unwrap_err().outcome, MediaOutcome::Invalid, "{task}");
        }
        assert_eq!(jobs.wait_ended(7).outcome, MediaOutcome::Invalid);
    }

    #[test]
    fn descriptions_are_lines() {
        let json = br#"{"streams":[{"codec_type":"audio","codec_name":"opus","sample_rate":"48000","channels":2}],
            "format":{"format_name":"ogg","duration":"1.5"}}"#;
        assert_eq!(describe(json).unwrap(), "ogg\n1500\naudio opus 48000 2");
        assert_eq!(line(&Ending::new(MediaOutcome::Failed, "a b")), "failed a b");
    }

    fn wish(desk: &Desk) -> Option<FromWorker> {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while std::time::Instant::now() < until {
            if let Some(wish) = desk.poll_wish() {
                return Some(wish);
            }
            std::thread::yield_now();
        }
        None
    }

    fn jobs(output_bytes_max: u64) -> (JavaJobs, &'static Desk) {
        let desk: &'static Desk = Box::leak(Box::default());
        desk.open(|| {});
        (JavaJobs::new(desk, output_bytes_max), desk)
    }
}
