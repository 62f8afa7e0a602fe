//! Operations on one key. An operation is sent again if the server's map has changed or if the
//! answer needs more room; a long value is read slice by slice.

use super::server::{Call, Failed, HEAD, Server};
use super::shared::Shared;
use crate::client::{Found, Item, Reply};
use crate::error::Error;
use crate::wire::{Answer, FoundItem, KEYED, Map, Request, Status};
use dunlin_store::SLICE;

impl Shared {
    /// Runs an operation on one key.
    pub(super) async fn keyed(
        &self,
        server: &Server,
        request: &Request<'_>,
    ) -> Result<Reply, Failed> {
        let deadline = self.deadline();
        let mut room = HEAD + self.options().client.expected_value as usize;
        loop {
            let map = self.map(server, deadline).await?;
            let endpoint = map.place(request.key()).endpoint;
            let mut bytes = vec![0; request.size()];
            request.encode(map.tag(), &mut bytes);
            let call = Call {
                endpoint,
                is_read: request.is_read(),
                room,
                deadline,
            };
            let answer = match self.call(server, KEYED, &bytes, call).await {
                Ok(answer) => answer,
                Err(Failed::TooLong(bytes)) if bytes > room => {
                    room = bytes;
                    continue;
                }
                Err(Failed::TooLong(_)) => return Err(Error::MessageTooLong.into()),
                Err(failed) => return Err(failed),
            };
            return match Answer::decode(&answer) {
                Ok(Answer::Found(item)) if item.is_long() => {
                    match self
                        .slices(server, (&map, call), request.key(), &item)
                        .await?
                    {
                        Some(item) => Ok(Reply::Found(Found::joined(item))),
                        // Another value has replaced this one.
                        None => {
                            room = HEAD + SLICE;
                            continue;
                        }
                    }
                }
                Ok(Answer::Found(item)) => Ok(Reply::Found(Found::joined(Item::of(&item)))),
                Ok(Answer::Refused(Status::MapChanged)) => {
                    server.forget(map.tag());
                    continue;
                }
                Ok(Answer::Refused(Status::Missing)) if request.is_read() => Ok(Reply::Missing),
                Ok(Answer::Written(version)) => Ok(Reply::Written(version)),
                Ok(Answer::Counted(number, version)) => Ok(Reply::Counted(number, version)),
                Ok(Answer::Done) => Ok(Reply::Done),
                Ok(Answer::Refused(status)) => Err(Error::of_status(status).into()),
                Ok(Answer::Slice(_)) | Err(_) => Err(Error::Incompatible.into()),
            };
        }
    }

    /// Reads the slices that follow the first one. `None`: the item was replaced meanwhile.
    async fn slices(
        &self,
        server: &Server,
        (map, call): (&Map, Call),
        key: &[u8],
        first: &FoundItem<'_>,
    ) -> Result<Option<Item>, Failed> {
        let mut item = Item::of(first);
        while item.value.len() < first.len as usize {
            let from = u32::try_from(item.value.len()).expect("a value has at most 1 MiB");
            let stamp = first.stamp;
            let request = Request::Slice { key, stamp, from };
            let mut bytes = vec![0; request.size()];
            request.encode(map.tag(), &mut bytes);
            let call = Call {
                room: HEAD + SLICE,
                ..call
            };
            let answer = self.call(server, KEYED, &bytes, call).await?;
            let left = first.len as usize - item.value.len();
            match Answer::decode(&answer) {
                Ok(Answer::Slice(slice)) if !slice.is_empty() && slice.len() <= left => {
                    item.value.extend_from_slice(slice);
                }
                Ok(Answer::Refused(Status::Gone | Status::MapChanged)) => return Ok(None),
                _ => return Err(Error::Incompatible.into()),
            }
        }
        Ok(Some(item))
    }
}
