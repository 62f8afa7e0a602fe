// eRPC, the transport and the program in one translation unit, which has the effect of link-time
// optimisation in eRPC's own build, and compiles faster.

#ifndef ERPC_MEMIF
// Included before eRPC's list of transports, which lacks this one.
#include "shm_transport.h"
#endif

#include "rpc.h"

// Each of eRPC's files instantiates the endpoint; here, one instance is enough.
#undef FORCE_COMPILE_TRANSPORTS
#define FORCE_COMPILE_TRANSPORTS

#include "nexus_impl/nexus.cc"
#include "nexus_impl/nexus_bg_thread.cc"
#include "nexus_impl/nexus_sm_thread.cc"
#include "rpc_impl/rpc.cc"
#include "rpc_impl/rpc_connect_handlers.cc"
#include "rpc_impl/rpc_cr.cc"
#include "rpc_impl/rpc_disconnect_handlers.cc"
#include "rpc_impl/rpc_ev_loop.cc"
#include "rpc_impl/rpc_fault_inject.cc"
#include "rpc_impl/rpc_kick.cc"
#include "rpc_impl/rpc_pkt_loss.cc"
#include "rpc_impl/rpc_queues.cc"
#include "rpc_impl/rpc_req.cc"
#include "rpc_impl/rpc_reset_handlers.cc"
#include "rpc_impl/rpc_resp.cc"
#include "rpc_impl/rpc_rfr.cc"
#include "rpc_impl/rpc_rx.cc"
#include "rpc_impl/rpc_sm_api.cc"
#include "rpc_impl/rpc_sm_helpers.cc"
#include "transport_impl/dpdk/dpdk_externs.cc"
#include "transport_impl/dpdk/dpdk_init.cc"
#include "transport_impl/dpdk/dpdk_transport.cc"
#include "transport_impl/dpdk/dpdk_transport_datapath.cc"
#include "transport_impl/transport.cc"
#include "util/huge_alloc.cc"
#include "util/numautils.cc"
#include "util/tls_registry.cc"

namespace erpc {
template class Rpc<CTransport>;
}

#include "peer.cc"
