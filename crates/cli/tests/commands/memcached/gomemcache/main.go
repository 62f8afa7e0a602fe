// Uses gomemcache against the server at a socket, and prints each answer on a line.
package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/bradfitz/gomemcache/memcache"
)

func show(name string, answer any, err error) {
	fmt.Println(name, answer, err)
}

// text is the content of an item without its version, which every server counts by itself.
func text(item *memcache.Item) string {
	if item == nil {
		return "none"
	}
	value := string(item.Value)
	if len(value) > 40 {
		value = fmt.Sprintf("%d bytes", len(value))
	}
	return fmt.Sprintf("%s %d %s", item.Key, item.Flags, value)
}

func get(client *memcache.Client, key string) *memcache.Item {
	item, err := client.Get(key)
	show("get "+key, text(item), err)
	return item
}

func items(client *memcache.Client) {
	set := func(key, value string, flags uint32, expiration int32) {
		item := memcache.Item{Key: key, Value: []byte(value), Flags: flags, Expiration: expiration}
		show("set "+key, "", client.Set(&item))
	}
	set("a", "x", 7, 100)
	get(client, "a")
	get(client, "none")
	show("add", "", client.Add(&memcache.Item{Key: "a", Value: []byte("y")}))
	show("add", "", client.Add(&memcache.Item{Key: "b", Value: []byte("y")}))
	show("replace", "", client.Replace(&memcache.Item{Key: "a", Value: []byte("z"), Flags: 9}))
	show("replace", "", client.Replace(&memcache.Item{Key: "none", Value: []byte("z")}))
	show("append", "", client.Append(&memcache.Item{Key: "a", Value: []byte("1")}))
	show("prepend", "", client.Prepend(&memcache.Item{Key: "a", Value: []byte("0")}))
	show("append", "", client.Append(&memcache.Item{Key: "none", Value: []byte("1")}))
	item := get(client, "a")
	old := *item
	item.Value = []byte("swapped")
	show("cas", "", client.CompareAndSwap(item))
	old.Value = []byte("late")
	show("cas", "", client.CompareAndSwap(&old))
	old.Key = "none"
	show("cas", "", client.CompareAndSwap(&old))
	get(client, "a")
	set("long", strings.Repeat("v", 1_000_000), 0, 0)
	get(client, "long")
	set("longer", strings.Repeat("v", 1_100_000), 0, 0)
	get(client, "longer")
	set("empty", "", 0, 0)
	get(client, "empty")
	set(strings.Repeat("k", 250), "longest key", 0, 0)
	get(client, strings.Repeat("k", 250))
	set(strings.Repeat("k", 251), "too long", 0, 0)
	set("has space", "refused", 0, 0)
	set("past", "gone", 0, -1)
	get(client, "past")
}

func numbers(client *memcache.Client) {
	show("set n", "", client.Set(&memcache.Item{Key: "n", Value: []byte("10")}))
	number, err := client.Increment("n", 5)
	show("increment", number, err)
	number, err = client.Decrement("n", 100)
	show("decrement", number, err)
	number, err = client.Increment("n", 1<<63)
	show("increment", number, err)
	number, err = client.Increment("n", 1<<63)
	show("increment", number, err)
	number, err = client.Increment("none", 1)
	show("increment", number, err)
	_, err = client.Increment("a", 1)
	show("increment", "", err)
}

func rest(client *memcache.Client) {
	for i := 0; i < 300; i++ {
		key := fmt.Sprintf("k%d", i)
		if err := client.Set(&memcache.Item{Key: key, Value: []byte(key)}); err != nil {
			show("set "+key, "", err)
		}
	}
	var keys []string
	for i := 0; i < 400; i++ {
		keys = append(keys, fmt.Sprintf("k%d", i))
	}
	found, err := client.GetMulti(keys)
	var lines []string
	for _, item := range found {
		lines = append(lines, text(item))
	}
	sort.Strings(lines)
	show("get multi", lines, err)
	show("touch", "", client.Touch("n", 100))
	show("touch", "", client.Touch("none", 100))
	item, err := client.GetAndTouch("n", 200)
	show("get and touch", text(item), err)
	show("delete", "", client.Delete("n"))
	show("delete", "", client.Delete("n"))
	show("ping", "", client.Ping())
	show("flush", "", client.FlushAll())
	show("delete all", "", client.DeleteAll())
	get(client, "a")
}

// together counts from many goroutines, whose connections the client keeps in a pool.
func together(client *memcache.Client) {
	show("set", "", client.Set(&memcache.Item{Key: "sum", Value: []byte("0")}))
	var all sync.WaitGroup
	failures := make(chan error, 8*50)
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 50; j++ {
				if _, err := client.Increment("sum", 1); err != nil {
					failures <- err
				}
			}
		}()
	}
	all.Wait()
	close(failures)
	for err := range failures {
		show("increment", "", err)
	}
	get(client, "sum")
}

func main() {
	client := memcache.New(os.Args[1])
	client.MaxIdleConns = 8
	items(client)
	numbers(client)
	rest(client)
	together(client)
	if err := client.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		show("close", "", err)
	}
}
