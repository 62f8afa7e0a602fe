//! Statistics as lines. Names and order are memcached's, so that its monitoring tools can read
//! them. Figures of mechanisms that this server lacks are 0.

use crate::command::{Topic, VERSION_LINE};
use crate::report::Report;

/// One value of a line.
enum Value {
    Number(u64),
    Text(String),
}

/// Appends the lines of a topic, and their end.
pub(crate) fn write(topic: Topic, report: &Report, out: &mut Vec<u8>) {
    match topic {
        Topic::General => general(report, out),
        Topic::Settings => settings(report, out),
        Topic::Items => items(report, out),
        Topic::Slabs => slabs(report, out),
        Topic::Sizes => row(out, "sizes_status", &Value::Text("disabled".into())),
        Topic::Connections => connections(report, out),
    }
    out.extend_from_slice(b"END\r\n");
}

fn row(out: &mut Vec<u8>, name: &str, value: &Value) {
    let line = match value {
        Value::Number(number) => format!("STAT {name} {number}\r\n"),
        Value::Text(text) => format!("STAT {name} {text}\r\n"),
    };
    out.extend_from_slice(line.as_bytes());
}

fn numbers(out: &mut Vec<u8>, rows: &[(&str, u64)]) {
    for (name, number) in rows {
        row(out, name, &Value::Number(*number));
    }
}

fn zeros(out: &mut Vec<u8>, names: &[&str]) {
    for name in names {
        row(out, name, &Value::Number(0));
    }
}

fn general(report: &Report, out: &mut Vec<u8>) {
    process_rows(report, out);
    command_rows(report, out);
    traffic_rows(report, out);
    zeros(
        out,
        &[
            "hash_is_expanding",
            "slab_reassign_rescues",
            "slab_reassign_chunk_rescues",
            "slab_reassign_evictions_nomem",
            "slab_reassign_inline_reclaim",
            "slab_reassign_busy_items",
            "slab_reassign_busy_deletes",
            "slab_reassign_running",
            "slabs_moved",
            "lru_crawler_running",
            "lru_crawler_starts",
            "lru_maintainer_juggles",
            "malloc_fails",
            "log_worker_dropped",
            "log_worker_written",
            "log_watcher_skipped",
            "log_watcher_sent",
            "log_watchers",
            "unexpected_napi_ids",
            "round_robin_fallback",
        ],
    );
    table_rows(report, out);
}

fn process_rows(report: &Report, out: &mut Vec<u8>) {
    let process = report.process();
    let connections = process.connections.len() as u64;
    let now = report.now().0;
    numbers(
        out,
        &[
            ("pid", process.pid.into()),
            ("uptime", now.saturating_sub(process.started.0).into()),
            ("time", now.into()),
        ],
    );
    let version = VERSION_LINE.trim_start_matches("VERSION ");
    row(out, "version", &Value::Text(version.into()));
    row(out, "libevent", &Value::Text("none".into()));
    row(out, "pointer_size", &Value::Number(usize::BITS.into()));
    for (name, time) in [
        ("rusage_user", process.user_time),
        ("rusage_system", process.system_time),
    ] {
        let seconds = format!("{}.{:06}", time.as_secs(), time.subsec_micros());
        row(out, name, &Value::Text(seconds));
    }
    numbers(
        out,
        &[
            ("max_connections", process.max_connections),
            ("curr_connections", connections),
            ("total_connections", process.total_connections),
            ("rejected_connections", process.rejected_connections),
            ("connection_structures", connections),
        ],
    );
    zeros(
        out,
        &[
            "response_obj_oom",
            "response_obj_count",
            "response_obj_bytes",
            "read_buf_count",
            "read_buf_bytes",
            "read_buf_bytes_free",
            "read_buf_oom",
            "reserved_fds",
        ],
    );
}

fn command_rows(report: &Report, out: &mut Vec<u8>) {
    let figures = report.figures();
    numbers(
        out,
        &[
            ("cmd_get", figures.get_hits + figures.get_misses),
            ("cmd_set", figures.writes),
            ("cmd_flush", figures.flushes),
            ("cmd_touch", figures.touch_hits + figures.touch_misses),
            ("cmd_meta", figures.inspections),
            ("get_hits", figures.get_hits),
            ("get_misses", figures.get_misses),
            ("get_expired", figures.table.expired),
            ("get_flushed", figures.table.flushed),
            ("delete_misses", figures.delete_misses),
            ("delete_hits", figures.delete_hits),
            ("incr_misses", figures.up_misses),
            ("incr_hits", figures.up_hits),
            ("decr_misses", figures.down_misses),
            ("decr_hits", figures.down_hits),
            ("cas_misses", figures.cas_misses),
            ("cas_hits", figures.cas_hits),
            ("cas_badval", figures.cas_differs),
            ("touch_hits", figures.touch_hits),
            ("touch_misses", figures.touch_misses),
            ("store_too_large", figures.too_large),
            ("store_no_memory", figures.no_memory),
        ],
    );
}

fn traffic_rows(report: &Report, out: &mut Vec<u8>) {
    let (process, table) = (report.process(), &report.figures().table);
    numbers(
        out,
        &[
            ("auth_cmds", process.auth_attempts),
            ("auth_errors", process.auth_failures),
            ("bytes_read", process.bytes_read),
            ("bytes_written", process.bytes_written),
            ("limit_maxbytes", process.memory),
            ("accepting_conns", 1),
            ("listen_disabled_num", 0),
            ("time_in_listen_disabled_us", 0),
            ("threads", process.threads),
            ("conn_yields", 0),
            ("hash_power_level", table.buckets.max(1).ilog2().into()),
            ("hash_bytes", table.index_bytes),
        ],
    );
}

fn table_rows(report: &Report, out: &mut Vec<u8>) {
    let table = &report.figures().table;
    numbers(
        out,
        &[
            ("bytes", table.item_bytes),
            ("curr_items", table.items),
            ("total_items", table.writes),
            ("slab_global_page_pool", 0),
            ("expired_unfetched", table.expired_unread),
            ("evicted_unfetched", table.evicted_unread),
            ("evicted_active", table.evicted_active),
            ("evictions", table.evicted + table.crowded),
            ("reclaimed", table.expired + table.flushed),
        ],
    );
    zeros(
        out,
        &[
            "crawler_reclaimed",
            "crawler_items_checked",
            "lrutail_reflocked",
            "moves_to_cold",
            "moves_to_warm",
            "moves_within_lru",
            "direct_reclaims",
            "lru_bumps_dropped",
        ],
    );
}

fn settings(report: &Report, out: &mut Vec<u8>) {
    let process = report.process();
    numbers(
        out,
        &[
            ("maxbytes", process.memory),
            ("maxconns", process.max_connections),
            ("num_threads", process.threads),
            (
                "item_size_max",
                process.most_value.unwrap_or(dunlin_store::MAX_VALUE as u64),
            ),
        ],
    );
    let flush_enabled = if process.refuses_flush { "no" } else { "yes" };
    for (name, text) in [
        ("cas_enabled", "yes"),
        ("flush_enabled", flush_enabled),
        ("dump_enabled", "yes"),
        ("binding_protocol", "ascii"),
    ] {
        row(out, name, &Value::Text(text.into()));
    }
    for (name, value) in &process.settings {
        row(out, name, &Value::Text(value.clone()));
    }
}

/// The table does not divide its memory into classes as memcached does, so all items are in class
/// 1.
fn items(report: &Report, out: &mut Vec<u8>) {
    let table = &report.figures().table;
    if table.items == 0 {
        return;
    }
    let age = match table.oldest_access {
        0 => 0,
        at => u64::from(report.now().0).saturating_sub(at),
    };
    numbers(
        out,
        &[
            ("items:1:number", table.items),
            ("items:1:age", age),
            ("items:1:mem_requested", table.item_bytes),
            ("items:1:evicted", table.evicted + table.crowded),
            ("items:1:evicted_nonzero", 0),
            ("items:1:evicted_time", 0),
            ("items:1:outofmemory", report.figures().no_memory),
            ("items:1:tailrepairs", 0),
            ("items:1:reclaimed", table.expired + table.flushed),
            ("items:1:expired_unfetched", table.expired_unread),
            ("items:1:evicted_unfetched", table.evicted_unread),
            ("items:1:evicted_active", table.evicted_active),
            ("items:1:crawler_reclaimed", 0),
            ("items:1:crawler_items_checked", 0),
            ("items:1:lrutail_reflocked", 0),
        ],
    );
}

fn slabs(report: &Report, out: &mut Vec<u8>) {
    let (figures, table) = (report.figures(), &report.figures().table);
    if table.items > 0 {
        numbers(
            out,
            &[
                ("1:chunk_size", 8),
                ("1:used_chunks", table.items),
                ("1:get_hits", figures.get_hits),
                ("1:cmd_set", figures.writes),
                ("1:delete_hits", figures.delete_hits),
                ("1:incr_hits", figures.up_hits),
                ("1:decr_hits", figures.down_hits),
                ("1:cas_hits", figures.cas_hits),
                ("1:cas_badval", figures.cas_differs),
                ("1:touch_hits", figures.touch_hits),
            ],
        );
    }
    numbers(
        out,
        &[
            ("active_slabs", u64::from(table.items > 0)),
            ("total_malloced", table.used_bytes),
        ],
    );
}

fn connections(report: &Report, out: &mut Vec<u8>) {
    for connection in &report.process().connections {
        let number = connection.number;
        let idle = report.now().0.saturating_sub(connection.last_command.0);
        let text = |text: &str| Value::Text(text.to_owned());
        row(out, &format!("{number}:addr"), &text(&connection.address));
        row(out, &format!("{number}:state"), &text("conn_read"));
        let name = format!("{number}:secs_since_last_cmd");
        row(out, &name, &Value::Number(idle.into()));
    }
}
