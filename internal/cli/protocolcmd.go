package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// newProtocolCmd is "agent protocol": about the JSON lines.
func newProtocolCmd(cio IO) *cobra.Command {
	cmd := &cobra.Command{Use: "protocol", Short: "Describe the JSON lines that hosts and the program exchange"}
	cmd.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a line",
		Long:  "Print the JSON Schema of a line. $defs/in is a line of a host, $defs/out one of the program ($defs/out_qwen in the qwen dialect).",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := protocolSchemaJSON()
			if err == nil {
				_, err = cio.Out.Write(data)
			}
			return err
		},
	})
	return cmd
}

// protocolSchemaJSON is the schema as printed.
func protocolSchemaJSON() ([]byte, error) {
	schema, err := protocolSchema()
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the protocol's schema: %w", err)
	}
	return append(data, '\n'), nil
}
