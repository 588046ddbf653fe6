package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand"
)

// randomFillOrder prints the order in which bbolt's TestBucket_Stats_RandomFill puts its keys: one line for each
// commit. It comes from the generator of Go's library, with the seed of that test.
func randomFillOrder(to io.Writer) error {
	out := bufio.NewWriterSize(to, 1<<16)
	random := rand.New(rand.NewSource(42))
	for _, i := range random.Perm(1000) {
		for _, j := range random.Perm(100) {
			fmt.Fprint(out, j*10000+i, " ")
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
