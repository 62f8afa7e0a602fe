//! A transport in memory whose buffers all exist from the start, so that the counter sees only
//! allocations of the endpoint.

use std::cell::RefCell;
use std::rc::Rc;

use dunlin_core::transport::{
    Frame, Halves, Limits, PeerId, RX_BURST, Rx, Transport, Tx, TxItem, TxSeq,
};

const DATA_SIZE: u32 = 1024;
const FRAME: usize = DATA_SIZE as usize + 64;
/// The most frames in a queue; further ones are lost.
const CELLS: usize = 1024;

/// The transport, whose halves are [`MemoryRx`] and [`MemoryTx`].
pub struct Memory;

impl Transport for Memory {
    type Rx = MemoryRx;
    type Tx = MemoryTx;
}

impl Memory {
    /// The only peer that an endpoint has.
    pub const PEER: PeerId = PeerId(0);

    /// Makes the halves for two endpoints, each of which is the other's only peer.
    pub fn pair() -> [Halves<MemoryRx, MemoryTx>; 2] {
        let queue = || {
            Rc::new(RefCell::new(Queue {
                cells: vec![EMPTY; CELLS],
                first: 0,
                len: 0,
            }))
        };
        let (there, back) = (queue(), queue());
        let end = |from: &Shared, to: &Shared| Halves {
            rx: MemoryRx {
                queue: Rc::clone(from),
                burst: vec![EMPTY; RX_BURST],
            },
            tx: MemoryTx {
                queue: Rc::clone(to),
                taken: 0,
                data: Vec::with_capacity(FRAME),
            },
            limits: Limits {
                data_size: DATA_SIZE,
                rx_queue: 1024,
                line_rate: 1 << 30,
            },
        };
        [end(&back, &there), end(&there, &back)]
    }
}

#[derive(Clone, Copy)]
struct Cell {
    len: usize,
    bytes: [u8; FRAME],
}

const EMPTY: Cell = Cell {
    len: 0,
    bytes: [0; FRAME],
};

struct Queue {
    cells: Vec<Cell>,
    first: usize,
    len: usize,
}

type Shared = Rc<RefCell<Queue>>;

/// The receiving half.
pub struct MemoryRx {
    queue: Shared,
    burst: Vec<Cell>,
}

/// The sending half.
pub struct MemoryTx {
    queue: Shared,
    taken: u64,
    data: Vec<u8>,
}

impl Rx for MemoryRx {
    fn burst(&mut self) -> usize {
        let mut queue = self.queue.borrow_mut();
        let count = queue.len.min(RX_BURST);
        for cell in &mut self.burst[..count] {
            *cell = queue.cells[queue.first];
            queue.first = (queue.first + 1) % CELLS;
        }
        queue.len -= count;
        count
    }

    fn frame(&self, index: usize) -> Frame<'_> {
        let cell = &self.burst[index];
        Frame::new(&cell.bytes[..cell.len])
    }
}

impl Tx for MemoryTx {
    fn burst(&mut self, items: &[TxItem]) -> TxSeq {
        let mut queue = self.queue.borrow_mut();
        for item in items {
            self.data.clear();
            if !item.data.is_empty() {
                dunlin_msgbuf::regions::read(item.data, &mut self.data)
                    .expect("lent msgbufs are current");
            }
            if queue.len == CELLS {
                continue;
            }
            let at = (queue.first + queue.len) % CELLS;
            queue.len += 1;
            let cell = &mut queue.cells[at];
            let inline = item.inline_len as usize;
            cell.len = inline + self.data.len();
            cell.bytes[..inline].copy_from_slice(&item.inline[..inline]);
            cell.bytes[inline..cell.len].copy_from_slice(&self.data);
        }
        self.taken += items.len() as u64;
        TxSeq(self.taken)
    }

    fn done(&mut self) -> TxSeq {
        TxSeq(self.taken)
    }

    fn flush(&mut self) {}
}
