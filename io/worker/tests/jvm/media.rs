// SPDX-License-Identifier: Apache-2.0
//! Media jobs that bundles ask for: the natives, with the test in the place of the node and of ffmpeg.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::Stdio;

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::{FromWorker, ToWorker};
use netserv_wire::container::media::{MediaOutcome, MediaSource, MediaTask};

use crate::support::{Worker, java_homes};

#[test]
fn a_bundle_writes_and_reads_a_job() {
    for java_home in java_homes() {
        let mut worker = Worker::start_on(&java_home, Stdio::inherit());
        worker.load(5, "media");
        let FromWorker::Media { slot, job, task } = worker.node.frame() else { panic!("a job is wanted") };
        assert_eq!((slot, task), (ModuleSlot(5), MediaTask::Probe { source: MediaSource::Any }));
        let ((our_input, input), (output, our_output)) = (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        worker.node.send_with(&ToWorker::MediaStarted { job }, &[input.as_fd(), output.as_fd()]);
        drop((input, output));
        let mut read = String::new();
        File::from(our_input).read_to_string(&mut read).unwrap();
        assert_eq!(read, "ello");
        File::from(our_output).write_all(b"output").unwrap();
        let detail = "why not".to_owned();
        worker.node.send(&ToWorker::MediaEnded { job, outcome: MediaOutcome::Failed, detail }, None);
        let (_, _, text) = worker.line();
        let expected = "invalid|invalid no such module|4 -2 -2 -2|output|-1 -2 -2|failed why not|ogg/0|null";
        assert_eq!(text, expected);
    }
}
