// Package settings is the engine of a configuration: it reads settings that tables declare, each once,
// from a YAML file, the environment and the flags of a command, and knows nothing of what they mean.
//
// A [Table] has one [Field] for each setting of a struct: its key, its default, its help, and the kind
// of its value ([Text], [Count], [Duration], ...) with bounds. All else follows from that: the name in
// the file, the environment variable, the flag, what is wrong with a text and where it was written
// ([Report]), which setting an unknown name may have meant, how the value is shown without secrets
// ([Printer]), and what is different in another version ([Differ]).
package settings
