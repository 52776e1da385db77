// Command agent is an AI coding agent for terminals, pipes, SDKs and CI.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/agentcli/agent/internal/cli"
)

func main() {
	io, err := cli.System()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: finding the working directory: %v\n", err)
		os.Exit(int(cli.ExitFailed))
	}
	os.Exit(int(cli.Main(context.Background(), io, os.Args[1:])))
}
