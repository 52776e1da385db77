// Command hello is the floor of `agent --version`: a bare Go process that
// prints a line.
package main

import "os"

func main() {
	if _, err := os.Stdout.WriteString("hello 0.1.0\n"); err != nil {
		os.Exit(1)
	}
}
