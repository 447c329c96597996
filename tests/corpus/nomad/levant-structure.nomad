job "levant" {
  group "g" {
    task "t" {
      driver = "exec"
      [[ if .gpu ]]
      resources { memory = 100 }
      [[ end ]]
    }
  }
}
