// Command porcupine checks histories of the key-value service, of the replicated store and of the
// sequencer for linearizability, each key of each server and each sequence by itself. The tests in
// crates/kv/tests/service/history, crates/replica/tests/cluster and crates/sequencer/tests/history write the
// histories, and the verdict of a checker in Rust. This program must agree with each verdict.
//
//	go run . FOLDER        reads FOLDER/*.history
//
// A file has histories, each a line "history NAME VERDICT", with the verdict "sound" or "broken",
// and a line for each operation:
//
//	SERVER KEY BEGIN END ACTION A B OUTCOME C D
//
// BEGIN and END are nanoseconds; the END of an operation whose outcome is unknown is 2^64 - 1. The
// meaning of A to D is in model.go. Exit codes: 0, all verdicts are right; 1, one is wrong, or a
// check has not ended in time; 2, the files cannot be read.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The longest check of one key. Histories are so short that a thousandth of this time is enough.
const timeout = 20 * time.Second

// The fewest keys and operations of a set of histories, so that an empty file is noticed.
const (
	leastKeys       = 10
	leastOperations = 1000
)

type register struct{ server, key int }

type history struct {
	name      string
	isBroken  bool
	registers map[register][]porcupine.Operation
}

type counts struct{ histories, broken, registers, operations, wrong int }

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: porcupine FOLDER"))
	}
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*.history"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no histories", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
	wrong := 0
	for _, path := range paths {
		histories, err := read(path)
		if err != nil {
			fail(fmt.Errorf("%s: %w", path, err))
		}
		sum := check(histories)
		if sum.registers < leastKeys || sum.operations < leastOperations {
			fail(fmt.Errorf("%s: only %d keys and %d operations", path, sum.registers, sum.operations))
		}
		fmt.Printf("%s: %d histories, of which %d are broken, %d keys, %d operations, %d wrong\n",
			filepath.Base(path), sum.histories, sum.broken, sum.registers, sum.operations, sum.wrong)
		wrong += sum.wrong
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "porcupine:", err)
	os.Exit(2)
}

// check compares each history with its verdict, and counts.
func check(histories []history) counts {
	model := model.ToModel()
	var sum counts
	for _, history := range histories {
		sum.histories++
		isBroken := false
		for register, operations := range history.registers {
			sum.registers++
			sum.operations += len(operations)
			switch porcupine.CheckOperationsTimeout(model, operations, timeout) {
			case porcupine.Illegal:
				isBroken = true
			case porcupine.Unknown:
				sum.wrong++
				fmt.Printf("history %s: nothing is known of key %d of server %d, after %v\n",
					history.name, register.key, register.server, timeout)
			case porcupine.Ok:
			}
		}
		if isBroken {
			sum.broken++
		}
		if isBroken != history.isBroken {
			sum.wrong++
			fmt.Printf("history %s: broken is %v here, and %v in its file\n",
				history.name, isBroken, history.isBroken)
		}
	}
	return sum
}

func read(path string) ([]history, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var histories []history
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 3 && words[0] == "history" {
			histories = append(histories, history{
				name:      words[1],
				isBroken:  words[2] == "broken",
				registers: map[register][]porcupine.Operation{},
			})
			continue
		}
		at, operation, err := operationOf(words)
		if err == nil && len(histories) == 0 {
			err = fmt.Errorf("there is no history")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		registers := histories[len(histories)-1].registers
		registers[at] = append(registers[at], operation)
	}
	return histories, lines.Err()
}

func operationOf(words []string) (register, porcupine.Operation, error) {
	var none porcupine.Operation
	if len(words) != 10 {
		return register{}, none, fmt.Errorf("%d words", len(words))
	}
	var numbers [8]uint64
	for place, at := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		number, err := strconv.ParseUint(words[at], 10, 64)
		if err != nil {
			return register{}, none, err
		}
		numbers[place] = number
	}
	begin, end := nanos(numbers[2]), nanos(numbers[3])
	at := register{server: int(numbers[0]), key: int(numbers[1])}
	return at, porcupine.Operation{
		Input:  input{words[4], numbers[4], numbers[5], begin, end},
		Call:   begin,
		Output: output{words[7], numbers[6], numbers[7]},
		Return: end,
	}, nil
}

func nanos(number uint64) int64 {
	if number > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(number)
}
