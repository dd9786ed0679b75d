// Package deploy tries what is in deploy at the top of the project: the chart, rendered as Helm renders it and decoded strictly into the
// types of Kubernetes, and the Compose file.
package deploy
