package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
)

// aboutSettings belongs to the help of every command that reads the configuration.
const aboutSettings = `Settings are read from the file, then from the environment, then from flags; later ones win. The
flag --delivery-timeout is the variable HOOKONCE_DELIVERY_TIMEOUT, and in the file the setting
timeout inside delivery. The flags from --source on describe one source; a file can have several.`

// defaultFile is read when it exists and no other file is named.
const defaultFile = "hookonce.yaml"

// settingFlags declares the flags of every setting, in the order of the declaration.
func settingFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	configFlag(fs)
	config.Flags(fs)
}

func configFlag(fs *pflag.FlagSet) {
	fs.String("config", "", "configuration `file`; hookonce.yaml in the working folder if it exists")
}

// loadConfig reads the configuration that the flags and the environment describe. The name says, for
// people, where it came from.
func loadConfig(w *env, flags *pflag.FlagSet) (cfg *config.Config, name string, err error) {
	in, err := configInput(w, flags)
	if err != nil {
		return nil, "", err
	}
	cfg, err = config.Load(in)
	return cfg, cmp.Or(in.Path, "flags and environment"), err
}

// reloadConfig is loadConfig for a gateway that runs with what the file at path said, if there was one. Without it
// what is left is another configuration, which nobody wrote.
func reloadConfig(w *env, flags *pflag.FlagSet, path string) (*config.Config, error) {
	in, err := configInput(w, flags)
	if err != nil {
		return nil, err
	}
	if path != "" && in.Path == "" {
		return nil, fmt.Errorf("the configuration file %s is not there any more; put it back", path)
	}
	return config.Load(in)
}

// loadStoreConfig is loadConfig for commands that only need the store: secrets stay unread.
func loadStoreConfig(w *env, flags *pflag.FlagSet) (*config.Config, error) {
	in, err := configInput(w, flags)
	if err != nil {
		return nil, err
	}
	in.NoSecrets = true
	return config.Load(in)
}

func configInput(w *env, flags *pflag.FlagSet) (config.Input, error) {
	path, data, err := readConfigFile(w, flags)
	return config.Input{Path: path, Data: data, Environ: w.environ, Flags: flags, ReadFile: os.ReadFile}, err
}

// readConfigFile returns the content of the configuration file, and an empty path if there is none.
func readConfigFile(w *env, flags *pflag.FlagSet) (path string, data []byte, err error) {
	path, err = flags.GetString("config")
	if err != nil {
		return "", nil, err
	}
	if path == "" {
		path = settings.Lookup(w.environ, config.FileVariable)
	}
	named := path != ""
	if !named {
		path = defaultFile
	}
	data, err = os.ReadFile(path)
	switch {
	case err == nil:
		return path, data, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("the configuration file cannot be read: %w", err)
	case named:
		return "", nil, fmt.Errorf("the configuration file %s does not exist; create it, or name another with --config", path)
	}
	return "", nil, nil
}

// needSources refuses a configuration in which a command that asks about one of its sources finds none. Nothing is opened for it.
func needSources(cfg *config.Config) error {
	switch {
	case len(cfg.Sources) > 0:
		return nil
	case cfg.File != "":
		return fmt.Errorf("%s has no source; add one, or name another file with --config", cfg.File)
	}
	return fmt.Errorf("there is no %s in this folder, and so no source; name the configuration file with --config", defaultFile)
}

// tellStore says which store is looked at where nobody said that, so that nobody takes its answer for that of another one.
func tellStore(w *env, cfg *config.Config) {
	if cfg.File == "" && !cfg.StoreNamed() {
		fmt.Fprintf(w.err, "There is no %s in this folder: the store is %s. Name another with --store or --config.\n", defaultFile, cfg.Store)
	}
}

// printWarnings writes what does not stop the program.
func printWarnings(w *env, cfg *config.Config) {
	for _, text := range cfg.Warnings {
		fmt.Fprintln(w.err, "warning:", text)
	}
}
