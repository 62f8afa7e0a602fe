// A transport for eRPC between two processes of one host, so that eRPC can be measured where Dunlin
// has its shared memory: one ring of fixed cells for each direction and pair of endpoints.
//
// - A cell begins on a cache line and holds one packet, header first. The two bytes in front of
//   eRPC's header (its headroom is 0 here) carry the lap of the ring that wrote the cell, so one
//   cache line both announces a packet and carries it. No index is shared.
// - Cells are an odd number of lines apart: small packets touch only the first line of each cell,
//   and these lines are spread over all sets of a cache.
// - A burst of small packets is written from its last packet to its first. The receiver waits for
//   the first, so it takes away no line that is still being written, and then finds the whole burst.
//   Large packets are written in order, so that both sides copy at the same time.
// - The receiver uses packets in place, as in the RX ring of a NIC, and gives cells back an eighth
//   of the ring at a time. A sender reads their count only when it has no cell left. Packets for a
//   full ring are lost, as in a NIC. Credits prevent this with up to kCells / kSessionCredits
//   sessions.
#pragma once

#include <emmintrin.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "transport.h"

#ifndef SHM_DATA_BYTES
#define SHM_DATA_BYTES 1024  // of a packet; eRPC's own for InfiniBand are 1024 to 4096
#endif

namespace erpc {

class ShmTransport : public Transport {
 public:
  // eRPC uses a transport's type only for a name in its log.
  static constexpr TransportType kTransportType = TransportType::kFake;
  static constexpr size_t kMaxDataPerPkt = SHM_DATA_BYTES;
  static constexpr size_t kMTU = kMaxDataPerPkt + sizeof(pkthdr_t);
  static constexpr size_t kPostlist = 32;
  static constexpr size_t kUnsigBatch = 32;
  static constexpr size_t kRxBatchSize = 32;

  ShmTransport(uint16_t, uint8_t rpc_id, uint8_t phy_port, size_t numa_node, FILE *trace_file)
      : Transport(kTransportType, rpc_id, phy_port, numa_node, trace_file) {
    std::random_device random;
    id_ = static_cast<uint64_t>(random()) << 32 | random();
    reg_mr_func_ = [](void *, size_t) { return mem_reg_info(); };
    dereg_mr_func_ = [](mem_reg_info) {};
  }

  ~ShmTransport() {
    for (size_t i = 0; i < num_peers_; i++) munmap(peers_[i].segment, sizeof(Segment));
  }

  void init_hugepage_structures(HugeAlloc *, uint8_t **rx_ring) { rx_ring_ = rx_ring; }

  // The rate of a fast NIC, 200 Gbit/s, with which congestion control begins.
  size_t get_bandwidth() const { return 25ull * 1000 * 1000 * 1000; }

  void fill_local_routing_info(routing_info_t *info) const {
    const Route route = {id_, nullptr};
    memset(info->buf_, 0, sizeof(info->buf_));
    memcpy(info->buf_, &route, sizeof(route));
  }

  // Both ends map a segment that is named after both. Its bytes begin as zeros, which means two
  // empty rings; the second end removes its name.
  bool resolve_remote_routing_info(routing_info_t *info) {
    auto *route = reinterpret_cast<Route *>(info->buf_);
    for (size_t i = 0; i < num_peers_; i++) {
      if (peers_[i].id == route->id) {
        route->tx = &peers_[i].tx;
        return true;
      }
    }
    if (num_peers_ == kMaxPeers || route->id == id_) return false;
    Segment *segment = map_segment(std::min(id_, route->id), std::max(id_, route->id));
    if (segment == nullptr) return false;

    Peer &peer = peers_[num_peers_++];
    peer.id = route->id;
    peer.segment = segment;
    const bool is_first = id_ < route->id;
    peer.tx.begin_at(&segment->lanes[is_first ? 0 : 1]);
    peer.rx.begin_at(&segment->lanes[is_first ? 1 : 0]);
    route->tx = &peer.tx;
    return true;
  }

  static std::string routing_info_str(routing_info_t *info) {
    return std::to_string(reinterpret_cast<Route *>(info->buf_)->id);
  }

  void tx_burst(const tx_burst_item_t *items, size_t count) {
    if (likely(num_peers_ == 1)) return send(&peers_[0].tx, items, count);
    for (size_t begin = 0, end; begin < count; begin = end) {
      End *tx = route_of(items[begin])->tx;
      for (end = begin + 1; end < count && route_of(items[end])->tx == tx;) end++;
      send(tx, items + begin, end - begin);
    }
  }

  // Packets are copied when they are sent, so there is nothing to wait for.
  void tx_flush() {}
  void post_recvs(size_t) {}

  size_t rx_burst() {
    size_t received = 0;
    for (size_t i = 0; i < num_peers_ && received < kRxBatchSize; i++) {
      End &rx = peers_[i].rx;
      if (likely(lap_of(rx.cell) != rx.lap)) continue;
      // eRPC is done with the packets of earlier bursts.
      if (unlikely(rx.count - rx.given_back >= kCells / 8)) {
        rx.given_back = rx.count;
        __atomic_store_n(&rx.lane->given_back, rx.count, __ATOMIC_RELEASE);
      }
      do {
        rx_ring_[rx_ring_head_] = rx.cell;
        rx_ring_head_ = (rx_ring_head_ + 1) % kNumRxRingEntries;
        rx.advance();
        received++;
      } while (received < kRxBatchSize && lap_of(rx.cell) == rx.lap);
    }
    return received;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kCellBytes = (((kMTU + kLine - 1) / kLine) | 1) * kLine;
  static constexpr size_t kCells = 512;
  static constexpr size_t kMaxPeers = 16;

  static_assert(kHeadroom == 0, "the lap lies where the headroom ends");
  static_assert(is_power_of_two(kCells), "an eighth of it is a whole number");

  // One direction. Its ends write different lines, and processors fetch lines in pairs.
  struct alignas(2 * kLine) Lane {
    size_t given_back;
    alignas(2 * kLine) uint8_t cells[kCells * kCellBytes];
  };

  struct Segment {
    Lane lanes[2];  // The first goes from the lower ID to the higher
    alignas(2 * kLine) size_t mapped;
  };

  // Where the next packet goes or comes from.
  struct End {
    uint8_t *cell;
    Lane *lane;
    size_t count;
    size_t given_back;
    uint16_t lap;

    void begin_at(Lane *of) {
      lane = of;
      cell = of->cells;
      count = given_back = 0;
      lap = 1;
    }

    uint8_t *end() const { return lane->cells + sizeof(lane->cells); }

    void advance() {
      count++;
      cell += kCellBytes;
      if (unlikely(cell == end())) {
        cell = lane->cells;
        lap++;
      }
    }
  };

  struct Peer {
    alignas(kLine) End tx;
    alignas(kLine) End rx;
    uint64_t id;
    Segment *segment;
  };

  // The data that eRPC's session management carries for us; the receiver adds `tx`.
  struct Route {
    uint64_t id;
    End *tx;
  };
  static_assert(sizeof(Route) <= kMaxRoutingInfoSize, "");

  static const Route *route_of(const tx_burst_item_t &item) {
    return reinterpret_cast<const Route *>(item.routing_info_->buf_);
  }

  static uint16_t lap_of(const uint8_t *cell) {
    return __atomic_load_n(reinterpret_cast<const uint16_t *>(cell), __ATOMIC_ACQUIRE);
  }

  static Segment *map_segment(uint64_t low, uint64_t high) {
    const std::string name = "/erpc-" + std::to_string(low) + "-" + std::to_string(high);
    const int fd = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
    if (fd < 0) return nullptr;
    void *memory = MAP_FAILED;
    if (ftruncate(fd, sizeof(Segment)) == 0) {
      memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                    0);
    }
    close(fd);
    if (memory == MAP_FAILED) return nullptr;
    auto *segment = static_cast<Segment *>(memory);
    const size_t before = __atomic_fetch_add(&segment->mapped, 1, __ATOMIC_SEQ_CST);
    if (before == 1) shm_unlink(name.c_str());
    return segment;
  }

  void send(End *tx, const tx_burst_item_t *items, size_t count) {
    if (unlikely(tx->count + count - tx->given_back > kCells)) {
      tx->given_back = __atomic_load_n(&tx->lane->given_back, __ATOMIC_ACQUIRE);
      count = std::min(count, kCells - (tx->count - tx->given_back));
      if (count == 0) return;
    }
    uint8_t *const first = tx->cell;
    const uint16_t lap = tx->lap;
    const auto put = [&](size_t i) {
      uint8_t *cell = first + i * kCellBytes;
      const bool wraps = cell >= tx->end();
      write(wraps ? cell - sizeof(tx->lane->cells) : cell, items[i], wraps ? lap + 1 : lap);
    };
    if (likely(items[0].msg_buffer_->get_data_size() + sizeof(pkthdr_t) <= kLine)) {
      for (size_t i = count; i-- > 0;) put(i);
    } else {
      for (size_t i = 0; i < count; i++) put(i);
    }
    tx->count += count;
    tx->cell = first + count * kCellBytes;
    if (unlikely(tx->cell >= tx->end())) {
      tx->cell -= sizeof(tx->lane->cells);
      tx->lap++;
    }
  }

  // Writes a packet, and last the word that shows it to the receiver.
  static void write(uint8_t *cell, const tx_burst_item_t &item, uint16_t lap) {
    const MsgBuffer *message = item.msg_buffer_;
    const size_t index = item.pkt_idx_;
    const size_t size = message->get_pkt_size<kMaxDataPerPkt>(index);
    constexpr size_t kHeader = sizeof(pkthdr_t);
    const uint8_t *header;
    if (likely(index == 0)) {
      header = reinterpret_cast<const uint8_t *>(message->get_pkthdr_0());
      if (likely(size <= kLine)) {
        // A msgbuf has whole lines, so all of the first may be read.
        for (size_t at = kLine - 16; at >= kHeader; at -= 16) copy_16(cell + at, header + at);
      } else {
        memcpy(cell + kHeader, header + kHeader, size - kHeader);
      }
    } else {
      header = reinterpret_cast<const uint8_t *>(message->get_pkthdr_n(index));
      memcpy(cell + kHeader, message->buf_ + index * kMaxDataPerPkt, size - kHeader);
    }

    // Read in the units in which eRPC has just written them: a load that is wider than the stores
    // before it waits until these have reached the cache.
    uint32_t type_and_size;
    uint16_t session;
    uint64_t numbers;
    memcpy(&type_and_size, header + 2, sizeof(type_and_size));
    memcpy(&session, header + 6, sizeof(session));
    memcpy(&numbers, header + 8, sizeof(numbers));
    const uint64_t word = static_cast<uint64_t>(session) << 48 |
                          static_cast<uint64_t>(type_and_size) << 16 | lap;
    memcpy(cell + 8, &numbers, sizeof(numbers));
    __atomic_store_n(reinterpret_cast<uint64_t *>(cell), word, __ATOMIC_RELEASE);
  }

  static void copy_16(uint8_t *to, const uint8_t *from) {
    _mm_store_si128(reinterpret_cast<__m128i *>(to),
                    _mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
  }

  uint8_t **rx_ring_ = nullptr;  // eRPC's, of pointers to packets
  size_t rx_ring_head_ = 0;
  size_t num_peers_ = 0;
  Peer peers_[kMaxPeers];
  uint64_t id_;
};

}  // namespace erpc
