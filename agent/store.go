package main

import (
	"rekindle.edge/agent/config"
	"rekindle.edge/agent/cri"
	"rekindle.edge/agent/snapshot"
	"rekindle.edge/agent/snapshot/durable"
	"rekindle.edge/agent/snapshot/vault"
)

// storeOptions are how the store is opened on a node.
func storeOptions(settings config.Config, runtime *cri.Client) []snapshot.Option {
	return []snapshot.Option{
		snapshot.WithChecker(durable.SelfChecker()),
		snapshot.WithSealer(vault.SystemdCreds{}),
		snapshot.WithWitnesses(settings.KubeletRootDir, snapshot.Runtime(runtime)),
	}
}
