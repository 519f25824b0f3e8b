module github.com/xdswatch/xdswatch/bench/kit

go 1.26
