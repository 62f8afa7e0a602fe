// eRPC as a peer of `dunlin bench compare`: measures one case by the contract in docs/comparing.md,
// and prints one JSON object.
//
//   erpc-... latency   transport=shm size=32 seconds=0.3 cpus=0,1 realtime=false
//   erpc-... rate      ... pattern=one_way|symmetric batch=3 inflight=60 size=32
//   erpc-... bandwidth ... size=8388608 inflight=1
//
// Over DPDK, cases also have device=memif and packing=true or false. eRPC sends each packet alone, so
// both have the same figures.
//
// Two processes with an endpoint each, on the two processors. Messages have the same content as in
// Dunlin's experiments: the client writes every word of a small request, the server answers with a
// function of all of them, and the client checks every word of the answer. Of a large request, one
// word in 16 KiB is written and checked. Many requests in flight are spread over eight sessions, as
// in Dunlin's experiments.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rpc.h"

#ifdef ERPC_MEMIF
namespace erpc {
const char *memif_device, *memif_lcores;
}
#endif

namespace {

#ifdef ERPC_MEMIF
constexpr char kTransport[] = "dpdk";
#else
constexpr char kTransport[] = "shm";
#endif

using Rpc = erpc::Rpc<erpc::CTransport>;
using erpc::MsgBuffer;

constexpr uint8_t kEcho = 1, kSink = 2;
constexpr size_t kMark = 16 << 10;   // Bytes of a large message between two words that are checked
constexpr size_t kSinkAnswer = 32;   // Bytes of the answer to a large request
constexpr size_t kSessions = 8;      // Of `rate`
constexpr int kBlock = 64;           // Iterations between two checks of the time
constexpr double kWarmUp = 0.05;     // Seconds before the first request that counts
constexpr double kStuck = 10;        // Seconds after which connecting is given up
constexpr size_t kSlots = 1 << 20;   // Of a histogram, one for each tick

struct Case {
  std::string experiment, pattern = "one_way";
  size_t size = 32, batch = 1, inflight = 1;
  double seconds = 0;
  int cpus[2] = {0, 1};
  bool realtime = false;
  std::string note;

  bool is_latency() const { return experiment == "latency"; }
  bool is_bandwidth() const { return experiment == "bandwidth"; }
  bool is_symmetric() const { return pattern == "symmetric"; }
  size_t sessions() const { return experiment == "rate" ? kSessions : 1; }
  size_t answer_size() const { return is_bandwidth() ? kSinkAnswer : size; }
} want;

// Memory that both processes share.
struct Shared {
  volatile int server_is_up, sides_ready, server_has_measured, is_over;
  volatile double server_rate;
  volatile size_t server_resent;
} *shared;

[[noreturn]] void fail(const std::string &why) {
  fprintf(stderr, "%s\n", why.c_str());
  _exit(1);
}

[[noreturn]] void refuse(const std::string &why) {
  printf("{\"unsupported\":\"%s\"}\n", why.c_str());
  fflush(stdout);
  _exit(0);
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

//
// The content of messages
//

// Calls `f` with the number of each word; without a loop for the usual size.
template <class F>
inline __attribute__((always_inline)) void each_word(size_t size, F f) {
  if (likely(size == 32)) {
    for (size_t i = 0; i < 4; i++) f(i);
  } else {
    for (size_t i = 0; i < size / 8; i++) f(i);
  }
}

inline void fill(uint8_t *data, size_t size, uint64_t first) {
  auto *words = reinterpret_cast<uint64_t *>(data);
  each_word(size, [=](size_t i) { words[i] = first + i; });
}

inline bool is_filled(const uint8_t *data, size_t size, uint64_t first) {
  auto *words = reinterpret_cast<const uint64_t *>(data);
  uint64_t differs = 0;
  each_word(size, [&](size_t i) { differs |= words[i] ^ (first + i); });
  return differs == 0;
}

inline void answer(const uint8_t *request, uint8_t *response, size_t size) {
  auto *words = reinterpret_cast<const uint64_t *>(request);
  uint64_t sum = 0;
  each_word(size, [&](size_t i) { sum += words[i]; });
  fill(response, size, ~sum);
}

inline bool is_answer(const uint8_t *response, size_t size, uint64_t counter) {
  const uint64_t words = size / 8;
  return is_filled(response, size, ~(counter * words + words * (words - 1) / 2));
}

void mark(uint8_t *data, size_t size, uint64_t counter) {
  for (size_t at = 0; at + 8 <= size; at += kMark, counter++) memcpy(data + at, &counter, 8);
}

bool is_marked(const uint8_t *data, size_t size, uint64_t counter) {
  for (size_t at = 0; at + 8 <= size; at += kMark, counter++) {
    if (memcmp(data + at, &counter, 8) != 0) return false;
  }
  return true;
}

//
// One endpoint: it serves, and it issues requests if it has sessions
//

struct InFlight {
  MsgBuffer request, response;
  uint64_t counter;
  size_t begin_tsc;
};

struct Side {
  Rpc *rpc = nullptr;
  std::vector<int> sessions;
  size_t connected = 0, next_session = 0;
  std::vector<InFlight> all;
  std::vector<InFlight *> free;
  uint64_t counter = 0, completed = 0;
  std::vector<uint32_t> histogram;

  size_t resent() const { return rpc->pkt_loss_stats_.num_re_tx_; }
};

void on_session(int, erpc::SmEventType event, erpc::SmErrType error, void *context) {
  if (event != erpc::SmEventType::kConnected || error != erpc::SmErrType::kNoError) {
    fail("eRPC cannot connect a session");
  }
  static_cast<Side *>(context)->connected++;
}

void on_echo(erpc::ReqHandle *handle, void *context) {
  const MsgBuffer *request = handle->get_req_msgbuf();
  const size_t size = request->get_data_size();
  MsgBuffer &response = handle->pre_resp_msgbuf_;
  Rpc::resize_msg_buffer(&response, size);
  answer(request->buf_, response.buf_, size);
  static_cast<Side *>(context)->rpc->enqueue_response(handle, &response);
}

void on_large(erpc::ReqHandle *handle, void *context) {
  const MsgBuffer *request = handle->get_req_msgbuf();
  uint64_t counter;
  memcpy(&counter, request->buf_, 8);
  if (!is_marked(request->buf_, request->get_data_size(), counter)) fail("a request is wrong");
  MsgBuffer &response = handle->pre_resp_msgbuf_;
  Rpc::resize_msg_buffer(&response, kSinkAnswer);
  fill(response.buf_, kSinkAnswer, counter);
  static_cast<Side *>(context)->rpc->enqueue_response(handle, &response);
}

void on_answer(void *context, void *tag);

inline void issue_one(Side *side, InFlight *it) {
  it->counter = side->counter++;
  // The clock is read before the request is written, and after its answer was checked.
  if (want.is_latency()) it->begin_tsc = erpc::rdtsc();
  const bool is_large = want.is_bandwidth();
  if (is_large) {
    mark(it->request.buf_, want.size, it->counter);
  } else {
    fill(it->request.buf_, want.size, it->counter);
  }
  const int session = side->sessions[side->next_session];
  if (++side->next_session == side->sessions.size()) side->next_session = 0;
  side->rpc->enqueue_request(session, is_large ? kSink : kEcho, &it->request, &it->response,
                             on_answer, it);
}

// Whole batches, as long as there are buffers for them.
void issue(Side *side) {
  while (side->free.size() >= want.batch) {
    for (size_t i = 0; i < want.batch; i++) {
      InFlight *it = side->free.back();
      side->free.pop_back();
      issue_one(side, it);
    }
  }
}

void on_answer(void *context, void *tag) {
  auto *side = static_cast<Side *>(context);
  auto *it = static_cast<InFlight *>(tag);
  const MsgBuffer &response = it->response;
  const bool is_right =
      response.get_data_size() == want.answer_size() &&
      (want.is_bandwidth() ? is_filled(response.buf_, kSinkAnswer, it->counter)
                           : is_answer(response.buf_, want.size, it->counter));
  if (want.is_latency()) {
    const size_t took = erpc::rdtsc() - it->begin_tsc;
    side->histogram[std::min(took, kSlots - 1)]++;
  }
  if (unlikely(!is_right)) fail("an answer is wrong");
  side->completed++;
  side->free.push_back(it);
  if (side->free.size() >= want.batch) issue(side);
}

void prepare(Side *side) {
  side->all.resize(want.inflight);
  side->histogram.resize(kSlots);
  for (InFlight &it : side->all) {
    it.request = side->rpc->alloc_msg_buffer_or_die(want.size);
    it.response = side->rpc->alloc_msg_buffer_or_die(want.answer_size());
    side->free.push_back(&it);
  }
}

void connect(Side *side, const std::string &to) {
  side->rpc->retry_connect_on_invalid_rpc_id_ = true;
  for (size_t i = 0; i < want.sessions(); i++) {
    const int session = side->rpc->create_session(to, 0);
    if (session < 0) fail("eRPC cannot make a session");
    side->sessions.push_back(session);
  }
  const double begin = now();
  while (side->connected < side->sessions.size()) {
    side->rpc->run_event_loop_once();
    if (now() - begin > kStuck) fail("eRPC's sessions do not connect");
  }
}

// Completions per second.
double run(Side *side, double seconds) {
  const double begin = now();
  const uint64_t before = side->completed;
  double end;
  do {
    for (int i = 0; i < kBlock; i++) side->rpc->run_event_loop_once();
    end = now();
  } while (end - begin < seconds);
  return static_cast<double>(side->completed - before) / (end - begin);
}

double quantile(const std::vector<uint32_t> &histogram, double quantile) {
  uint64_t total = 0, seen = 0;
  for (uint32_t count : histogram) total += count;
  size_t at = 0;
  for (; at + 1 < histogram.size(); at++) {
    seen += histogram[at];
    if (static_cast<double>(seen) >= quantile * static_cast<double>(total)) break;
  }
  return static_cast<double>(at);
}

//
// The two processes
//

// Gives the calling thread, and threads that it starts, priority over all ordinary threads, and over
// threads with a lower `priority`.
void go_first(int priority) {
  if (!want.realtime) return;
  sched_param param = {};
  param.sched_priority = priority;
  if (sched_setscheduler(0, SCHED_FIFO, &param) != 0) fail("realtime=true needs root");
}

void sit_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) fail("cannot run on that processor");
}

// eRPC manages its sessions over UDP, at ports of a narrow range. Pairs of processes that run at
// the same time should use different ports.
std::string address(int process) {
  static const int pair = getppid() % 16;
  return "127.0.0.1:" + std::to_string(erpc::kBaseSmUdpPort + 2 * pair + process);
}

void await_server() {
  const double begin = now();
  while (!shared->server_is_up) {
    usleep(1000);
    if (now() - begin > kStuck) fail("the server does not come up");
  }
}

#ifdef ERPC_MEMIF
// Names the device of a process. The two devices meet at a socket without a file, and the server's
// device must open first. Buffers as long as eRPC's packets let the driver handle whole bursts.
void name_device(int process) {
  static std::string device, lcores;
  device = std::string("net_memif0,role=") + (process == 1 ? "server" : "client") +
           ",socket=/dunlin-erpc-" + std::to_string(process == 1 ? getppid() : getpid()) +
           ",bsize=" +
           std::to_string(erpc::DpdkTransport::kMbufSize - RTE_PKTMBUF_HEADROOM);
  erpc::memif_device = device.c_str();
  lcores = "--lcores=0@" + std::to_string(want.cpus[process]);
  erpc::memif_lcores = lcores.c_str();
}
#else
void name_device(int) {}
#endif

// Opens an endpoint on its processor. eRPC's own threads, which mostly sleep, have a higher priority.
// The client opens its endpoint after the server.
template <class F>
void with_endpoint(int process, F body) {
  if (process == 0) await_server();
  name_device(process);
  go_first(2);
  erpc::Nexus nexus(address(process), 0, 0);
  nexus.register_req_func(kEcho, on_echo);
  nexus.register_req_func(kSink, on_large);
  Side side;
  Rpc rpc(&nexus, &side, 0, on_session);
  // DPDK has started its own threads, and lets this thread run on any processor.
  sit_on(want.cpus[process]);
  go_first(1);
  side.rpc = &rpc;
  body(side);
}

void serve(Side &side) {
  shared->server_is_up = 1;
  if (want.is_symmetric()) {
    prepare(&side);
    connect(&side, address(0));
    shared->sides_ready = 1;
    while (shared->sides_ready < 2) side.rpc->run_event_loop_once();
    issue(&side);
    run(&side, kWarmUp);
    shared->server_rate = run(&side, want.seconds);
    shared->server_resent = side.resent();
    shared->server_has_measured = 1;
  }
  while (!shared->is_over) {
    for (int i = 0; i < kBlock; i++) side.rpc->run_event_loop_once();
  }
}

void print(const Side &side, double rate, size_t resent) {
  const auto figure = [](const char *metric, const char *unit, double value) {
    printf("{\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.3f}", metric, unit, value);
  };
  printf("{\"figures\":[");
  if (want.is_latency()) {
    const char *names[] = {"rtt_p50", "rtt_p99", "rtt_p999"};
    const double quantiles[] = {0.5, 0.99, 0.999};
    for (int i = 0; i < 3; i++) {
      if (i > 0) printf(",");
      figure(names[i], "ns", quantile(side.histogram, quantiles[i]) / side.rpc->get_freq_ghz());
    }
  } else if (want.is_bandwidth()) {
    figure("gbps", "Gbit/s", rate * static_cast<double>(want.size) * 8e-9);
  } else {
    figure("rpc_per_s", "1/s", rate);
  }
  printf("],\"notes\":[");
  const char *between = "";
  if (!want.note.empty()) {
    printf("\"%s\"", want.note.c_str());
    between = ",";
  }
  if (resent > 0) printf("%s\"%zu packets were sent again\"", between, resent);
  printf("],\"run\":{\"program\":\"eRPC\",\"commit\":\"%s\",\"congestion_control\":%s,"
         "\"packet_bytes\":%zu}}\n",
         ERPC_COMMIT, erpc::kEnableCc ? "true" : "false", erpc::CTransport::kMaxDataPerPkt);
  fflush(stdout);
}

void call(Side &side) {
  prepare(&side);
  connect(&side, address(1));
  if (want.is_symmetric()) {
    while (shared->sides_ready < 1) side.rpc->run_event_loop_once();
    shared->sides_ready = 2;
  }
  issue(&side);
  run(&side, kWarmUp);
  std::fill(side.histogram.begin(), side.histogram.end(), 0);
  double rate = run(&side, want.seconds);
  const size_t resent = side.resent();
  if (want.is_symmetric()) {
    while (!shared->server_has_measured) side.rpc->run_event_loop_once();
    rate = std::min(rate, static_cast<double>(shared->server_rate));
  }
  shared->is_over = 1;
  print(side, rate, resent + shared->server_resent);
}

//
// The request
//

size_t number(const std::string &text) {
  char *end;
  const unsigned long long value = strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != 0) fail("not a number: " + text);
  return value;
}

// Takes the value of a word that the experiment must have.
size_t take(std::map<std::string, std::string> *words, const char *name) {
  const auto found = words->find(name);
  if (found == words->end()) fail(std::string(name) + "=... is missing");
  const size_t value = number(found->second);
  words->erase(found);
  return value;
}

void parse(int argc, char **argv) {
  if (argc < 2) fail("usage: EXPERIMENT NAME=VALUE...; see the head of peer.cc");
  want.experiment = argv[1];
  std::map<std::string, std::string> words;
  for (int i = 2; i < argc; i++) {
    const std::string word = argv[i];
    const size_t middle = word.find('=');
    if (middle == std::string::npos) fail(word + " is not NAME=VALUE");
    words[word.substr(0, middle)] = word.substr(middle + 1);
  }
  if (words["transport"] != kTransport) refuse(std::string("only ") + kTransport);
  if (words.count("cpus") &&
      sscanf(words["cpus"].c_str(), "%d,%d", &want.cpus[0], &want.cpus[1]) != 2) {
    fail("cpus=CLIENT,SERVER");
  }
  want.seconds = strtod(words["seconds"].c_str(), nullptr);
  if (!(want.seconds > 0)) fail("seconds=... is missing, or not above 0");
  want.realtime = words["realtime"] == "true";
  for (const char *name : {"transport", "cpus", "seconds", "realtime"}) words.erase(name);

  if (want.experiment == "rate") {
    want.pattern = words["pattern"];
    words.erase("pattern");
    want.batch = take(&words, "batch");
    want.inflight = take(&words, "inflight");
    if (want.pattern != "one_way" && want.pattern != "symmetric") refuse("no such pattern");
    if (want.batch == 0 || want.batch > want.inflight) refuse("no such batch");
  } else if (want.experiment == "bandwidth") {
    want.inflight = take(&words, "inflight");
  } else if (want.experiment != "latency") {
    refuse("only latency, rate and bandwidth");
  }
  want.size = take(&words, "size");
#ifdef ERPC_MEMIF
  if (words["device"] != "memif") refuse("only memif");
  words.erase("device");
  words.erase("packing");
#endif
  if (!words.empty()) refuse("no parameter " + words.begin()->first);
  if (want.size % 8 != 0 || want.size == 0) refuse("no messages that are not whole words");
  // The largest request has a little less than 8 MiB.
  if (want.is_bandwidth() && want.size == 8 << 20) {
    want.size = Rpc::kMaxMsgSize / 8 * 8;
    want.note = std::to_string(want.size) + " bytes a request, which is eRPC's largest";
  }
  if (want.size > Rpc::kMaxMsgSize) refuse("no messages of that size");
}

}  // namespace

int main(int argc, char **argv) {
  parse(argc, argv);
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  shared = static_cast<Shared *>(memory);
  address(0);  // Both processes have the same ports
  const pid_t server = fork();
  if (server < 0) fail("cannot start another process");
  try {
    if (server == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      with_endpoint(1, [](Side &side) {
        serve(side);
        _exit(0);
      });
    }
    with_endpoint(0, [server](Side &side) {
      call(side);
      waitpid(server, nullptr, 0);
      // The system frees all resources.
      _exit(0);
    });
  } catch (const std::exception &error) {
    fail(error.what());
  }
}
