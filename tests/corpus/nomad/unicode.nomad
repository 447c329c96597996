job "größe-日本" {
  meta { città = "Zürich" }
  group "g" {
    task "tâche" {
      driver = "exec"
      config {
        command = "/bin/écho"
        args    = ["\u00fc\U0001F600", "λ"]
      }
      resources { memory = 55 } # größer
    }
  }
}
