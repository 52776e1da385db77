// Command agent is an AI coding agent for terminals, pipes, SDKs and CI.
package main

import (
	"context"
	"os"

	"github.com/agentcli/agent/internal/cli"
)

func main() {
	os.Exit(int(cli.Main(context.Background(), cli.System(), os.Args[1:])))
}
