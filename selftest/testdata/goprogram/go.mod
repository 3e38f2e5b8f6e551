module example.org/program

go 1.21
