// What a test needs of Argo CD in one program: its application controller, its repository server,
// and the Redis that both keep their caches in.
package main

import (
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	repository "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "argo-cd"}
	redis := &cobra.Command{
		Use:  "redis ADDRESS",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			server := miniredis.NewMiniRedis()
			if err := server.StartAddr(arguments[0]); err != nil {
				return err
			}
			// Its keys expire by a clock of its own, which somebody has to advance.
			for range time.Tick(time.Second) {
				server.FastForward(time.Second)
			}
			return nil
		},
	}
	root.AddCommand(controller.NewCommand(), repository.NewCommand(), redis)
	if err := root.Execute(); err != nil {
		log.Print(err)
		os.Exit(1)
	}
}
