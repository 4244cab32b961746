// SPDX-License-Identifier: Apache-2.0
//! `netserv:media/jobs@1.1.0`.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::second as wit;
use super::wit::Error;
use super::{MediaJob, orders};
use crate::state::ServerState;

impl wit::Host for ServerState {
    async fn begin(&mut self, order: wit::Order) -> wasmtime::Result<Result<Resource<MediaJob>, Error>> {
        let begun = MediaJob::begin(&self.module, orders::task(order)).await;
        self.give(begun)
    }
}

impl wit::HostJob for ServerState {
    fn input(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<Resource<DynOutputStream>, Error>> {
        let stream = self.table.get_mut(&job)?.input();
        self.give(stream)
    }

    fn output(
        &mut self,
        job: Resource<MediaJob>,
        place: u32,
    ) -> wasmtime::Result<Result<Resource<DynInputStream>, Error>> {
        self.give_output(&job, place)
    }

    async fn finish(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.table.delete(job)?.finish().await)
    }

    fn drop(&mut self, job: Resource<MediaJob>) -> wasmtime::Result<()> {
        self.table.delete(job)?.drop_by_component();
        Ok(())
    }
}
