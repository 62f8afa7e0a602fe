package main

import (
	"math"

	"github.com/anishathalye/porcupine"
)

// An operation, with the times when it began and ended.
//
//	get                                count (adds one)       delete
//	set NUMBER LIFETIME (seconds)      add NUMBER             cas NUMBER VERSION
//	pass NUMBER LIFETIME (nanoseconds; the item may stay longer)
//	lose (the server has stopped)      evict VERSION
//	take COUNT RANK (numbers of a sequence; RANK: the call's place among all calls, by their numbers)
type input struct {
	action     string
	a, b       uint64
	begin, end int64
}

// The outcome of an operation.
//
//	found NUMBER VERSION    written VERSION    counted NUMBER VERSION
//	absent    present    differs (the version)    done    unknown
//	conflict (there is no item, or its version differs)
//	given FIRST (and the numbers after it)
type output struct {
	outcome string
	c, d    uint64
}

// The item of a key, or none. Its version is unknown if the outcome of its write is unknown. The item
// may be gone from the time `first` on, and must be gone from `last` on.
type item struct {
	exists, hasVersion bool
	number, version    uint64
	first, last        int64
}

const (
	never  = math.MaxInt64
	second = 1_000_000_000
)

var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{item{}} },
	Step: func(state, in, out interface{}) []interface{} {
		return after(state.(item), in.(input), out.(output))
	},
}

// after returns the states after an operation, of which there are two if the item may have expired.
func after(state item, in input, out output) []interface{} {
	var states []interface{}
	if !state.exists || in.begin < state.last {
		states = append(states, step(state, in, out)...)
	}
	if state.exists && in.end >= state.first {
		states = append(states, step(item{}, in, out)...)
	}
	return states
}

// step returns the state after an operation, if the operation can have its outcome.
func step(state item, in input, out output) []interface{} {
	isUnknown := out.outcome == "unknown"
	mayHappen := isUnknown || out.outcome == "written" || out.outcome == "done"
	switch in.action {
	case "lose":
		return one(item{}, true)
	case "evict":
		// An item whose time is up may be evicted, too.
		return one(item{}, !state.exists || !state.hasVersion || state.version == in.a)
	case "take":
		return take(state, in, out)
	case "get":
		return get(state, out)
	case "set":
		return one(written(in, out, in.b), mayHappen)
	case "pass":
		return one(passing(in, out), mayHappen)
	case "add":
		if state.exists {
			return one(state, isUnknown || out.outcome == "present")
		}
		return one(written(in, out, 0), mayHappen)
	}
	if !state.exists {
		isMissing := out.outcome == "absent" || out.outcome == "conflict"
		return one(state, isUnknown || isMissing)
	}
	switch in.action {
	case "delete":
		return one(item{}, mayHappen)
	case "count":
		state.number++
		state.version, state.hasVersion = out.d, !isUnknown
		isCounted := out.outcome == "counted" && out.c == state.number
		return one(state, isUnknown || isCounted)
	case "cas":
		return compareAndSet(state, in, out, isUnknown, mayHappen)
	}
	panic("no action is called " + in.action)
}

// take adds to a counter, whose value is the next number, and whose version is the number of calls
// so far. It may skip numbers.
func take(state item, in input, out output) []interface{} {
	isNext := out.outcome == "given" && in.b == state.version && out.c >= state.number
	taken := item{exists: true, number: out.c + in.a, version: in.b + 1, first: never, last: never}
	return one(taken, isNext)
}

func compareAndSet(state item, in input, out output, isUnknown, mayHappen bool) []interface{} {
	mayFit := !state.hasVersion || state.version == in.b
	mayDiffer := !state.hasVersion || state.version != in.b
	switch {
	case out.outcome == "differs" || out.outcome == "conflict":
		return one(state, mayDiffer)
	case isUnknown && !mayFit:
		// It changes nothing.
		return one(state, true)
	default:
		return one(written(in, out, 0), mayFit && mayHappen)
	}
}

func get(state item, out output) []interface{} {
	switch {
	case out.outcome == "absent":
		return one(state, !state.exists)
	case out.outcome != "found" || !state.exists:
		return nil
	}
	isIt := state.number == out.c && (!state.hasVersion || state.version == out.d)
	state.version, state.hasVersion = out.d, true
	return one(state, isIt)
}

// written is the item that a write of in.a leaves.
func written(in input, out output, lifetime uint64) item {
	written := item{
		exists: true,
		number: in.a,
		first:  never,
		last:   never,
	}
	if out.outcome == "written" {
		written.version, written.hasVersion = out.c, true
	}
	if lifetime > 0 {
		written.first, written.last = expiry(in.begin, lifetime), expiry(in.end, lifetime)
	}
	return written
}

// passing is the item that a write of in.a leaves for the time in.b at least.
func passing(in input, out output) item {
	passing := written(in, out, 0)
	passing.first = later(in.begin, in.b)
	return passing
}

// later is a time after another one.
func later(at int64, span uint64) int64 {
	if span > uint64(never-at) {
		return never
	}
	return at + int64(span)
}

// expiry is the time at which an item written at a given time expires. Servers count seconds.
func expiry(at int64, lifetime uint64) int64 {
	if at == never {
		return never
	}
	return (at/second + int64(lifetime)) * second
}

func one(state item, isPossible bool) []interface{} {
	if !isPossible {
		return nil
	}
	return []interface{}{state}
}
