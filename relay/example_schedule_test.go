package relay_test

import (
	"fmt"
	"time"

	"github.com/hookonce/hookonce/relay"
)

func ExampleDefaultSchedule() {
	schedule := relay.DefaultSchedule()
	delay, again := schedule(1)
	fmt.Println(delay <= 5*time.Second, again)
	_, again = schedule(13)
	fmt.Println(again)
	// Output:
	// true true
	// false
}
