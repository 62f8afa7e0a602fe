module dunlin/porcupine

go 1.19

// MIT licence, in LICENSE.md of the module.
require github.com/anishathalye/porcupine v1.3.1
