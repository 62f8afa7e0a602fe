//! Requests for whole partitions: figures, hot keys, scans and flushes of a server.

use super::Channels;
use super::server::{Call, Failed, Server};
use super::shared::Shared;
use crate::client::{Reply, room_for};
use crate::error::Error;
use crate::fleet::ServerError;
use crate::wire::{Figures, HotKeys, Map, Status, WHOLE, Whole};

impl Channels {
    /// The names of the servers that are listed now.
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        let list = self.shared.list();
        list.servers.iter().map(|it| it.name().to_owned()).collect()
    }

    /// Returns the partition map of the server with this name in the list.
    ///
    /// # Errors
    /// [`ServerError`]; [`Error::Unavailable`] if no listed server has this name.
    pub async fn map(&self, server: &str) -> Result<Map, ServerError> {
        let list = self.shared.list();
        let server = list.named(server).ok_or(Error::Unavailable)?;
        let map = self.shared.map(server, self.shared.deadline()).await;
        map.map_err(|failed| server.error(failed.into()))
    }

    /// Returns the figures of each partition of a server.
    ///
    /// # Errors
    /// [`ServerError`]; [`Error::Unavailable`] if no listed server has this name.
    pub async fn figures(&self, server: &str) -> Result<Vec<Figures>, ServerError> {
        let mut all = Vec::new();
        for partition in 0..self.map(server).await?.partitions() {
            let reply = self.run_whole(server, partition, Whole::Figures).await?;
            all.push(reply.figures()?);
        }
        Ok(all)
    }

    /// Returns the keys that clients read most, for each partition of a server.
    ///
    /// # Errors
    /// [`ServerError`]; [`Error::Unavailable`] if no listed server has this name.
    pub async fn hot_keys(&self, server: &str) -> Result<Vec<HotKeys>, ServerError> {
        let mut all = Vec::new();
        for partition in 0..self.map(server).await?.partitions() {
            let reply = self.run_whole(server, partition, Whole::Hot).await?;
            all.push(reply.hot()?);
        }
        Ok(all)
    }

    /// Returns some keys of a server's partition, beginning at a place, and the place for the next
    /// call, or `None` at the end. The first place is 0; see
    /// [`Connection::scan`](crate::Connection::scan).
    ///
    /// # Errors
    /// [`ServerError`]; [`Error::Unavailable`] if no listed server has this name, or the server has
    /// no such partition.
    pub async fn scan(
        &self,
        server: &str,
        partition: u16,
        place: u64,
    ) -> Result<(Vec<Vec<u8>>, Option<u64>), ServerError> {
        let scan = Whole::Scan(place);
        Ok(self.run_whole(server, partition, scan).await?.keys()?)
    }

    /// Flushes each partition of each server in turn, like
    /// [`Connection::flush`](crate::Connection::flush) for one server.
    ///
    /// # Errors
    /// [`ServerError`]; some partitions may have been flushed.
    pub async fn flush(&self, delay: u32) -> Result<(), ServerError> {
        for server in self.servers() {
            for partition in 0..self.map(&server).await?.partitions() {
                let flush = Whole::Flush(delay);
                self.run_whole(&server, partition, flush).await?;
            }
        }
        Ok(())
    }

    async fn run_whole(
        &self,
        server: &str,
        partition: u16,
        whole: Whole,
    ) -> Result<Reply, ServerError> {
        let list = self.shared.list();
        let server = list.named(server).ok_or(Error::Unavailable)?;
        let reply = self.shared.whole(server, partition, whole).await;
        reply.map_err(|failed| server.error(failed.into()))
    }
}

impl Shared {
    /// Runs a request for a whole partition of a server.
    async fn whole(&self, server: &Server, partition: u16, whole: Whole) -> Result<Reply, Failed> {
        let deadline = self.deadline();
        loop {
            let map = self.map(server, deadline).await?;
            let call = Call {
                endpoint: map.endpoint(partition).ok_or(Error::Unavailable)?,
                is_read: whole.is_read(),
                room: room_for(whole),
                deadline,
            };
            let mut bytes = vec![0; whole.size()];
            whole.encode(map.tag(), &mut bytes);
            let answer = self.call(server, WHOLE, &bytes, call).await?;
            match Reply::of_whole(&answer) {
                Err(Status::MapChanged) => server.forget(map.tag()),
                reply => return Ok(reply.map_err(Error::of_status)?),
            }
        }
    }
}
