package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

const (
	nodes = 3
	slots = 1 << 14
)

// startCluster starts servers and makes a cluster of them. They end when nobody holds them any more.
func startCluster() ([]*Server, error) {
	var members []*Server
	for range nodes {
		s, err := startNode()
		if err != nil {
			closeAll(members)
			return nil, err
		}
		members = append(members, s)
	}
	if err := join(members); err != nil {
		closeAll(members)
		return nil, err
	}
	return members, nil
}

func closeAll(members []*Server) {
	for _, s := range members {
		s.close()
	}
}

func startNode() (*Server, error) {
	bus, err := throwaway.FreePort()
	if err != nil {
		return nil, err
	}
	return start(Options{Settings: []string{
		"cluster-enabled yes", "cluster-port " + strconv.Itoa(bus), "cluster-announce-ip 127.0.0.1", "cluster-node-timeout 5000",
	}})
}

// join introduces the servers to each other, gives each its share of the slots, and returns when all of
// them take commands.
func join(members []*Server) error {
	for i, s := range members {
		err := s.do(func(ctx context.Context, c *redis.Client) error {
			first, last := i*slots/nodes, (i+1)*slots/nodes-1
			return errors.Join(
				c.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(),
				c.ClusterAddSlotsRange(ctx, first, last).Err(),
				members[0].meet(ctx, c),
			)
		})
		if err != nil {
			return fmt.Errorf("redistest: cluster: %w", err)
		}
	}
	for _, s := range members {
		if err := s.await("the cluster does not form", agreed); err != nil {
			return err
		}
	}
	return nil
}

// meet introduces the server behind c to s.
func (s *Server) meet(ctx context.Context, c *redis.Client) error {
	var bus string
	err := s.do(func(ctx context.Context, own *redis.Client) (err error) {
		settings, err := own.ConfigGet(ctx, "cluster-port").Result()
		bus = settings["cluster-port"]
		return err
	})
	return errors.Join(err, c.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", s.port, bus).Err())
}

// agreed reports whether the server behind c knows who has every slot.
func agreed(ctx context.Context, c *redis.Client) bool {
	info := c.ClusterInfo(ctx).Val()
	return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(nodes)) &&
		strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slots))
}
