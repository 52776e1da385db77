package cli

import (
	"fmt"
	"github.com/spf13/cobra"

	"github.com/agentcli/agent/internal/settings"
)

// newConfigCmd is "agent config": settings from the command line.
func newConfigCmd(cio IO) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Show and change settings"}
	cmd.AddCommand(newConfigGetCmd(cio), newConfigListCmd(cio), newConfigSetCmd(cio), newConfigUnsetCmd(cio), newConfigSchemaCmd(cio))
	return cmd
}

func bindPrint(cmd *cobra.Command, p *settings.PrintOptions) {
	cmd.Flags().BoolVar(&p.JSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&p.Origin, "origin", false, "say also where each value was set")
}

func newConfigGetCmd(cio IO) *cobra.Command {
	var p settings.PrintOptions
	cmd := &cobra.Command{
		Use: "get KEY", Short: "Print one setting", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := configSettings(cio)
			if err != nil {
				return err
			}
			return usageError(settings.RunGet(cio.Out, set, args[0], p))
		},
	}
	bindPrint(cmd, &p)
	return cmd
}

func newConfigListCmd(cio IO) *cobra.Command {
	var p settings.PrintOptions
	cmd := &cobra.Command{
		Use: "list", Short: "Print all settings that have a value", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set, err := configSettings(cio)
			if err != nil {
				return err
			}
			return usageError(settings.RunList(cio.Out, set, p))
		},
	}
	bindPrint(cmd, &p)
	return cmd
}

func newConfigSchemaCmd(cio IO) *cobra.Command {
	var p settings.PrintOptions
	cmd := &cobra.Command{
		Use: "schema", Short: "Print all keys, with --json as a JSON Schema", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return usageError(settings.RunSchema(cio.Out, p)) },
	}
	cmd.Flags().BoolVar(&p.JSON, "json", false, "print the JSON Schema of a settings file")
	return cmd
}

func newConfigSetCmd(cio IO) *cobra.Command {
	var where scopeFlags
	cmd := &cobra.Command{
		Use: "set KEY VALUE", Short: "Set one key; comments and the rest of the file stay", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			target, err := where.target(cio)
			if err != nil {
				return err
			}
			return usageError(settings.RunSet(target, args[0], args[1]))
		},
	}
	where.bind(cmd)
	return cmd
}

func newConfigUnsetCmd(cio IO) *cobra.Command {
	var where scopeFlags
	cmd := &cobra.Command{
		Use: "unset KEY", Short: "Remove one key", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			target, err := where.target(cio)
			if err != nil {
				return err
			}
			return usageError(settings.RunUnset(target, args[0]))
		},
	}
	where.bind(cmd)
	return cmd
}

// scopeFlags say which file is written; the user's by default.
type scopeFlags struct{ project, local bool }

func (s *scopeFlags) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.project, "project", false, "write the project's .agent/settings.json")
	cmd.Flags().BoolVar(&s.local, "local", false, "write the project's .agent/settings.local.json")
	cmd.MarkFlagsMutuallyExclusive("project", "local")
}

func (s *scopeFlags) target(cio IO) (settings.Target, error) {
	dirs, err := findDirs(cio)
	t := settings.Target{Layer: settings.User, Dirs: dirs, Root: settings.FindRoot(cio.Dir)}
	switch {
	case s.project:
		t.Layer = settings.Project
	case s.local:
		t.Layer = settings.Local
	}
	return t, err
}

func configSettings(cio IO) (*settings.Settings, error) {
	dirs, err := findDirs(cio)
	if err != nil {
		return nil, err
	}
	return loadSettings(cio, settings.LoadOptions{Dirs: dirs}, func(text string) { fmt.Fprintf(cio.Err, "warning: %s\n", text) })
}

// usageError makes err one of wrong use.
func usageError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{ExitUsage, err}
}
