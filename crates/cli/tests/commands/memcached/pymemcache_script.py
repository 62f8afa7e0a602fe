"""Uses pymemcache against the server at a socket, and prints each answer on a line."""

import sys

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError

client = Client(sys.argv[1])


def show(name, *arguments, **options):
    try:
        answer = getattr(client, name)(*arguments, **options)
    except MemcacheError as error:
        answer = f"{type(error).__name__}: {error}"
    print(name, arguments[:1], answer)
    return answer


show("set", "a", "x", expire=100)
show("get", "a")
show("add", "a", "y", noreply=False)
show("replace", "a", "z", noreply=False)
version = client.gets("a")[1]
show("cas", "a", "w", version)
show("cas", "a", "v", version)
show("cas", "none", "v", b"1")
show("append", "a", "1", noreply=False)
show("prepend", "a", "0", noreply=False)
show("get", "a")
show("set", "n", "10")
show("incr", "n", 5)
show("decr", "n", 100)
show("incr", "none", 1)
show("incr", "a", 1)
show("touch", "n", 100, noreply=False)
show("delete", "n", noreply=False)
show("delete", "n", noreply=False)
show("set_many", {f"k{i}": "v" * i for i in range(300)})
print(sorted(client.get_many([f"k{i}" for i in range(400)]).items()))
show("set", "big", "b" * 1_000_000, noreply=False)
print(len(client.get("big")))
show("set", "bigger", "b" * 1_100_000, noreply=False)
show("set", "k" * 251, "v")
show("flush_all", noreply=False)
show("get", "a")
print(sorted(key for key in client.stats("settings") if key in (b"maxbytes", b"maxconns")))
show("quit")
