// Serves dynalite on a free port of the loopback address, tells the port, and ends when its standard input does.
const server = require('dynalite')({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 })
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit()).resume()
