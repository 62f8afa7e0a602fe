//! Gets of many keys of one server: one request to each partition that has some of them, all at the
//! same time. Keys that do not fit into an answer are asked for again.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use dunlin_store::Mode;

use super::server::{Call, Failed, Server};
use super::shared::Shared;
use crate::client::{Found, Item};
use crate::error::Error;
use crate::fleet::WhenDown;
use crate::wire::{Answer, Keys, MAX_KEYS, MULTI, Map, Records, Request, Status};

/// A record of a get of many keys.
enum Record {
    Item(Option<Item>),
    /// The value must be asked for separately.
    Alone,
}

impl Shared {
    /// Gets keys of one server, with one request to each partition that has some of them. If the
    /// options allow misses and the server is a cache, keys of partitions that are down count as
    /// missing.
    pub(super) async fn many(
        &self,
        server: &Server,
        keys: &[&[u8]],
    ) -> Result<Vec<Result<Option<Item>, Error>>, Failed> {
        let deadline = self.deadline();
        let mut items = vec![Ok(None); keys.len()];
        let mut most_asked = usize::MAX;
        let (mut pending, mut alone): (Vec<usize>, Vec<usize>) =
            ((0..keys.len()).collect(), Vec::new());
        while !pending.is_empty() {
            let map = match self.map(server, deadline).await {
                Err(Failed::Down) if self.misses(server).await => break,
                map => map?,
            };
            let groups = groups(&map, keys, &std::mem::take(&mut pending), most_asked);
            let asked = groups.iter().map(|(endpoint, group)| {
                let keys: Vec<&[u8]> = group.iter().map(|at| keys[*at]).collect();
                self.some(server, &map, (*endpoint, keys), deadline)
            });
            for ((_, group), records) in groups.iter().zip(all(asked).await) {
                let records = match records {
                    // The partition of these keys is down.
                    Err(Failed::Down) if self.misses(server).await => continue,
                    // The server may accept requests for fewer keys.
                    Err(Failed::With(Error::MessageTooLong)) if group.len() > 1 => {
                        let asked = Keys::size(group.iter().map(|at| keys[*at]));
                        most_asked = most_asked.min(asked / 2);
                        Vec::new()
                    }
                    // A get of its own is shorter.
                    Err(Failed::With(Error::MessageTooLong)) => {
                        alone.extend(group);
                        continue;
                    }
                    records => records?,
                };
                pending.extend(&group[records.len().min(group.len())..]);
                for (at, record) in group.iter().zip(records) {
                    match record {
                        Record::Item(item) => items[*at] = Ok(item),
                        Record::Alone => alone.push(*at),
                    }
                }
            }
        }
        let asked = alone.iter().map(|at| async {
            let request = Request::Get { key: keys[*at] };
            Ok(self.keyed(server, &request).await?.found()?)
        });
        for (at, found) in alone.iter().zip(all(asked).await) {
            items[*at] = match found {
                Err(Failed::Down) if self.misses(server).await => Ok(None),
                // The key or its value fits into no message of the server. That concerns no other
                // key.
                Err(Failed::With(error @ Error::MessageTooLong)) => Err(error),
                found => Ok(found?.map(Found::into_item)),
            };
        }
        Ok(items)
    }

    /// Whether a get for a server that is down is a miss, as it is for a cache. A server that was
    /// never reached is assumed to have the mode of the others. If none was reached yet, this asks
    /// all of them; if none answers, the get fails.
    pub(super) async fn misses(&self, server: &Server) -> bool {
        if self.options().when_down != WhenDown::Miss {
            return false;
        }
        let list = self.list();
        let known = || {
            let others = || list.servers.iter().find_map(|it| it.mode());
            server.mode().or_else(others)
        };
        if known().is_none() {
            let deadline = self.deadline();
            all(list.servers.iter().map(|it| self.map(it, deadline))).await;
        }
        known() == Some(Mode::Cache)
    }

    /// Gets keys of one partition. Returns the records of the first keys, or none if the map is
    /// outdated.
    async fn some(
        &self,
        server: &Server,
        map: &Map,
        (endpoint, keys): (u16, Vec<&[u8]>),
        deadline: Instant,
    ) -> Result<Vec<Record>, Failed> {
        let limit = self.options().client.multi_answer;
        let each = || keys.iter().copied();
        let mut bytes = vec![0; Keys::size(each())];
        Keys::encode(map.tag(), limit, keys.len(), each(), &mut bytes);
        let call = Call {
            endpoint,
            is_read: true,
            room: limit as usize,
            deadline,
        };
        let answer = self.call(server, MULTI, &bytes, call).await?;
        match Records::decode(&answer) {
            Ok(Ok(records)) if !records.is_empty() => {
                let record = |answer: &Answer<'_>| match answer {
                    Answer::Found(item) => Record::Item(Some(Item::of(item))),
                    Answer::Refused(Status::Alone) => Record::Alone,
                    _ => Record::Item(None),
                };
                Ok(records.iter().map(record).collect())
            }
            Ok(Err(Status::MapChanged)) => {
                server.forget(map.tag());
                Ok(Vec::new())
            }
            _ => Err(Error::Incompatible.into()),
        }
    }
}

/// Groups some of the keys by the endpoints of their partitions. A group has one key, or at most
/// [`MAX_KEYS`] whose request has at most `most_asked` bytes.
fn groups(map: &Map, keys: &[&[u8]], some: &[usize], most_asked: usize) -> Vec<(u16, Vec<usize>)> {
    let mut groups: Vec<(u16, Vec<usize>, usize)> = Vec::new();
    for at in some {
        let (endpoint, size) = (map.place(keys[*at]).endpoint, Keys::size_of(keys[*at]));
        let is_it = |(to, group, asked): &&mut (u16, Vec<usize>, usize)| {
            *to == endpoint && group.len() < MAX_KEYS && *asked + size <= most_asked
        };
        match groups.iter_mut().find(is_it) {
            Some((_, group, asked)) => {
                group.push(*at);
                *asked += size;
            }
            None => groups.push((endpoint, vec![*at], Keys::size([].into_iter()) + size)),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(endpoint, group, _)| (endpoint, group))
        .collect()
}

/// A future, or its output once it has ended.
type Running<F> = (Pin<Box<F>>, Option<<F as Future>::Output>);

/// Waits for several futures, which run at the same time.
pub(super) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let futures = futures.into_iter().map(|future| (Box::pin(future), None));
    let mut futures: Vec<Running<F>> = futures.collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let outputs = futures.into_iter().filter_map(|(_, output)| output);
    outputs.collect()
}

#[cfg(test)]
mod tests;
