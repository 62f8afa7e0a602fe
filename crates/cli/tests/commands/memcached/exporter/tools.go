//go:build tools

// Package exporter names Prometheus's exporter of memcached, so that the module pins its version.
package exporter

import _ "github.com/prometheus/memcached_exporter/cmd/memcached_exporter"
