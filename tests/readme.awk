# readme.awk - takes the examples out of README.md: a block ```sql followed by a block ```text is
# one example, the statements and what the shell prints (list mode, columns by |). A ```sql block
# without output after it is shown for reading only. Writes dir/NN.sql and dir/NN.out.
/^```sql/ { block = "sql"; text = ""; next }
/^```text/ && text != "" { block = "out"; output = ""; next }
/^```/ && block == "sql" { block = ""; next }
/^```/ && block == "out" {
  n++
  name = sprintf("%s/%02d", dir, n)
  printf "%s", text > (name ".sql")
  printf "%s", output > (name ".out")
  close(name ".sql"); close(name ".out")
  block = ""; text = ""
  next
}
/^```/ { block = block == "" ? "other" : ""; next }
block == "sql" { text = text $0 "\n"; next }
block == "out" { output = output $0 "\n"; next }
block == "" && NF > 0 { text = "" }
