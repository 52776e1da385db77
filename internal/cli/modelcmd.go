package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/agentcli/agent/internal/model/scripted"
)

// newModelCmd is "agent model": tools around models.
func newModelCmd(cio IO) *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Work with model scripts"}
	cmd.AddCommand(newModelServeCmd(cio))
	return cmd
}

func newModelServeCmd(cio IO) *cobra.Command {
	var opts scripted.ServeOptions
	var logFile string
	cmd := &cobra.Command{
		Use:   "serve --script FILE",
		Short: "Play a model script as a server that speaks the Gemini, OpenAI and Anthropic APIs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Script == "" {
				return fail(ExitUsage, "name the script to play: --script FILE")
			}
			if logFile != "" {
				f, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				if err != nil {
					return fail(ExitUsage, "--log: %w", err)
				}
				defer f.Close()
				opts.Server.Log = f
			}
			opts.Out = cio.Out
			return serveModel(cmd.Context(), cio, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Script, "script", "", "the model script (docs/model-scripts.md)")
	cmd.Flags().StringVar(&opts.Listen, "listen", "", "address to listen on; a free port of 127.0.0.1 if empty")
	cmd.Flags().IntVar(&opts.Server.FlushEvery, "flush-every", 1, "deltas that leave together; more are cheaper and come less smoothly")
	cmd.Flags().StringVar(&logFile, "log", "", "append a JSON line per request to this file")
	return cmd
}

// serveModel serves until a signal comes, which is its normal end.
func serveModel(ctx context.Context, cio IO, opts scripted.ServeOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cio.onSignal(cancel)()
	if err := scripted.Run(ctx, opts); err != nil {
		return fail(ExitInput, "%w", err)
	}
	return nil
}
