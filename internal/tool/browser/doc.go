// Package browser looks at the dashboard in a real browser: that everybody can use it, that nothing but its own script runs in it,
// and that every action can be taken from the keyboard.
package browser
